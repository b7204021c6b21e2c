package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// tally counts outcomes by group: the operator or program at the start of a case's name.
type tally map[string]counts

type counts struct{ passed, refused, failed int } // refused are included in passed

func (t tally) add(name string, refused bool, err error) {
	group, _, _ := strings.Cut(name, "/")
	c := t[group]
	switch {
	case err != nil:
		c.failed++
	case refused:
		c.refused++
		fallthrough
	default:
		c.passed++
	}
	t[group] = c
}

func (t tally) total() (sum counts) {
	for _, c := range t {
		sum.passed += c.passed
		sum.refused += c.refused
		sum.failed += c.failed
	}
	return sum
}

// print writes one line per group.
func (t tally) print(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "cases\tpassed\trefused\tfailed\t ")
	for _, group := range slices.Sorted(maps.Keys(t)) {
		c := t[group]
		fmt.Fprintf(tw, "%d\t%d\t%d\t%d\t  %s\n", c.passed+c.failed, c.passed, c.refused, c.failed, group)
	}
	tw.Flush()
}
