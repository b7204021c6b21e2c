package trace

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/etrun-go/etrun/internal/duration"
)

// Row is the sum of the events with the same kind and name.
type Row struct {
	Kind  Kind
	Name  string
	Depth int           // 1 for a node of the preceding delegate, else 0
	Calls int           // average per run; 0 for time outside events
	Total time.Duration // average per run
	Share float64       // share of the total time of runs

	delegate int
}

// sums are the rows over all runs.
type sums struct {
	runs    int
	execute time.Duration
	rows    []*Row
	inside  map[int][]*Row // nodes by delegate
}

// Summary sums up the events inside runs by kind and name, longest first, with the nodes of
// delegates below their delegate. Time outside events has its own row, so that shares of depth 0
// add up to 1, and those of depth 1 to their delegate's.
func (r *Recorder) Summary() []Row {
	s := r.sum()
	var list []Row
	add := func(row Row, depth int) {
		row.Depth, row.Share = depth, float64(row.Total)/float64(max(s.execute, 1))
		row.Calls /= max(s.runs, 1)
		row.Total /= time.Duration(max(s.runs, 1))
		list = append(list, row)
	}
	for _, row := range withRemainder(s.rows, Execute, "outside instructions", s.execute) {
		add(*row, 0)
		if nodes := s.inside[row.delegate]; row.Kind == Delegate && len(nodes) > 0 {
			for _, node := range withRemainder(nodes, Delegate, "outside nodes", row.Total) {
				add(*node, 1)
			}
		}
	}
	return list
}

// sum adds up the events inside runs.
func (r *Recorder) sum() *sums {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &sums{inside: make(map[int][]*Row)}
	type key struct {
		kind     Kind
		name     string
		delegate int
	}
	rows := make(map[key]*Row)
	for i := range r.Events {
		e := &r.Events[i]
		switch {
		case e.Kind == Execute:
			s.execute += e.Duration()
			s.runs++
		case (Instructions | Nodes).Has(e.Kind):
			k := key{e.Kind, e.Name, e.Delegate}
			if rows[k] == nil {
				rows[k] = &Row{Kind: e.Kind, Name: e.Name, delegate: e.Delegate}
				s.place(rows[k])
			}
			rows[k].Calls++
			rows[k].Total += e.Duration()
		}
	}
	return s
}

func (s *sums) place(row *Row) {
	if row.Kind == Node {
		s.inside[row.delegate] = append(s.inside[row.delegate], row)
		return
	}
	s.rows = append(s.rows, row)
}

// withRemainder sorts rows and appends one for the rest of the whole.
func withRemainder(rows []*Row, kind Kind, name string, whole time.Duration) []*Row {
	rows = slices.Clone(rows)
	for _, row := range rows {
		whole -= row.Total
	}
	slices.SortFunc(rows, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return append(rows, &Row{Kind: kind, Name: name, Total: whole})
}

// WriteTable writes the summary as a human-readable table.
func (r *Recorder) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "time/run\tshare\tcalls\tkind\t  name")
	for _, row := range r.Summary() {
		fmt.Fprintf(t, "%s\t%.1f %%\t%d\t%v\t  %s%s\n", duration.Format(row.Total), 100*row.Share, row.Calls, row.Kind,
			strings.Repeat("  ", row.Depth), row.Name)
	}
	return t.Flush()
}
