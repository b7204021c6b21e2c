package main

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/valuetext"
	"github.com/etrun-go/etrun/delegate"
)

// print writes the report as text, one screen for a usual program. Unless all is set,
// constant methods share a line, and so do identical delegates.
func (r *programReport) print(w io.Writer, all bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	header := "no extended header"
	if r.Header {
		header = "extended header"
	}
	fmt.Fprintf(t, "%s: %s, program version %d, %s", r.Model, bytesize.Format(r.Bytes), r.Version, header)
	if r.Bundled > 0 {
		fmt.Fprintf(t, ", %s", cli.Count(r.Bundled, "bundled test case", "bundled test cases"))
	}
	fmt.Fprintln(t)
	constants := []string{}
	for i := range r.Methods {
		m := &r.Methods[i]
		if text, ok := m.constants(); ok && !all {
			constants = append(constants, cli.Printable(m.Name)+" = "+text)
			continue
		}
		m.print(t, all)
	}
	if len(constants) > 0 {
		fmt.Fprintf(t, "\n%s: %s\n", cli.Count(len(constants), "constant method", "constant methods"), strings.Join(constants, ", "))
	}
	if n := len(r.Named); n > 0 {
		total := 0
		for _, bytes := range r.Named {
			total += bytes
		}
		fmt.Fprintf(t, "\nnamed data: %s, %s\n", cli.Count(n, "entry", "entries"), bytesize.Format(int64(total)))
	}
	if r.Speech != "" {
		fmt.Fprintf(t, "\nspeech: family %s, see etrun transcribe\n", r.Speech)
	}
	if len(r.Media) > 0 {
		fmt.Fprintf(t, "\nlanguage model whose prompts may have a %s, see etrun generate\n", strings.Join(textOf(r.Media), " or a "))
	}
	return t.Flush()
}

// textOf returns names as strings.
func textOf[T ~string](list []T) (names []string) {
	for _, x := range list {
		names = append(names, string(x))
	}
	return names
}

// constants returns the outputs of a method without inputs and instructions, which
// exporters add for metadata.
func (m *methodReport) constants() (text string, ok bool) {
	if m.Instructions > 0 || len(m.Inputs) > 0 || len(m.Outputs) == 0 || m.LoadError != "" {
		return "", false
	}
	var values []string
	for _, v := range m.Outputs {
		if v.Value == nil {
			return "", false
		}
		value := fmt.Sprint(v.Value)
		if text, isText := v.Value.(string); isText {
			value = strconv.Quote(text)
		}
		values = append(values, cli.Printable(value))
	}
	return strings.Join(values, ", "), true
}

func (m *methodReport) print(t *tabwriter.Writer, all bool) {
	fmt.Fprintf(t, "\nmethod %s: %s\n", cli.Printable(m.Name), cli.Count(m.Instructions, "instruction", "instructions"))
	printValues(t, "inputs", m.Inputs)
	printValues(t, "outputs", m.Outputs)
	m.printOperators(t)
	if len(m.Delegates) > 0 {
		fmt.Fprintf(t, "  delegates\n")
	}
	m.printDelegates(t, all)
	m.printFolded(t)
	m.printRewritten(t)
	if m.Lowered != nil {
		m.Lowered.print(t)
	}
	m.printRepairs(t)
	m.printTogether(t)
	m.Memory.print(t)
	if m.LoadError != "" {
		fmt.Fprintf(t, "  does not run here: %s\n", m.LoadError)
	}
}

func printValues(t *tabwriter.Writer, what string, values []session.ValueReport) {
	if len(values) == 0 {
		fmt.Fprintf(t, "  no %s\n", what)
		return
	}
	fmt.Fprintf(t, "  %s\n", what)
	for i, v := range values {
		words := []string{}
		for _, word := range []string{cli.Printable(v.Name), v.Order, v.Dynamism, v.Storage} {
			if word != "" && word != "static" {
				words = append(words, word)
			}
		}
		fmt.Fprintf(t, "    %d  %s\t%s\n", i, v.ShapeText(), strings.Join(words, ", "))
	}
}

func (m *methodReport) printOperators(t *tabwriter.Writer) {
	if len(m.Operators) == 0 {
		return
	}
	fmt.Fprintf(t, "  operators\tcalls\n")
	for _, o := range m.Operators {
		note := ""
		if !o.Available {
			note = "\tmissing"
		}
		fmt.Fprintf(t, "    %s\t%d%s\n", cli.Printable(o.Name), o.Calls, note)
	}
}

func (m *methodReport) printFolded(t *tabwriter.Writer) {
	if len(m.Folded) == 0 {
		return
	}
	fmt.Fprintf(t, "  executed once, at load: constants of %s\n", bytesize.Format(m.Memory.Folded))
	for _, o := range m.Folded {
		fmt.Fprintf(t, "    %s\t%d\n", cli.Printable(o.Name), o.Calls)
	}
}

func (m *methodReport) printRewritten(t *tabwriter.Writer) {
	if len(m.Rewritten) == 0 {
		return
	}
	fmt.Fprint(t, "  removed or changed at load")
	if m.Memory.Rewritten > 0 {
		fmt.Fprintf(t, ", with constants of %s", bytesize.Format(m.Memory.Rewritten))
	}
	fmt.Fprintln(t)
	for _, w := range m.Rewritten {
		fmt.Fprintf(t, "    %s\t%d\t%s\n", cli.Printable(w.Name), w.Calls, w.Rewrite)
	}
}

func (m *methodReport) printRepairs(t *tabwriter.Writer) {
	printTexts(t, "repaired faults of the exporter", m.Repairs)
	printTexts(t, "faults of the exporter that are not repaired: results may be wrong", m.Faults)
}

func printTexts(t *tabwriter.Writer, title string, texts []string) {
	if len(texts) > 0 {
		fmt.Fprintf(t, "  %s\n", title)
	}
	for _, text := range texts {
		fmt.Fprintf(t, "    %s\n", cli.Legible(text))
	}
}

// printDelegates writes delegates that differ only in their weights once.
func (m *methodReport) printDelegates(t *tabwriter.Writer, all bool) {
	for i := 0; i < len(m.Delegates); {
		last := i
		for last+1 < len(m.Delegates) && !all && m.Delegates[i].alike(&m.Delegates[last+1]) {
			last++
		}
		at := fmt.Sprint(i)
		if last > i {
			at = fmt.Sprintf("%d–%d, identical", i, last)
		}
		m.Delegates[i].print(t, at, all)
		i = last + 1
	}
}

// alike reports whether two delegates have the same backend, nodes and figures.
func (d *delegateReport) alike(e *delegateReport) bool {
	return d.ID == e.ID && d.PayloadBytes == e.PayloadBytes && d.Calls == e.Calls && d.Available == e.Available && d.Engine == e.Engine &&
		d.WeightBytes == e.WeightBytes && d.ScratchBytes == e.ScratchBytes && reflect.DeepEqual(d.Nodes, e.Nodes) &&
		slices.Equal(d.info.Facts, e.info.Facts)
}

func (d *delegateReport) print(t *tabwriter.Writer, at string, all bool) {
	fmt.Fprintf(t, "    %s  %s: payload %s, %s", at, cli.Printable(d.ID), bytesize.Format(int64(d.PayloadBytes)), cli.Count(d.Calls, "call", "calls"))
	if !d.Available {
		fmt.Fprint(t, ", missing")
	}
	if d.Engine != "" {
		fmt.Fprintf(t, ", %s engine, weights %s, scratch %s", d.Engine, bytesize.Format(d.WeightBytes), bytesize.Format(d.ScratchBytes))
	}
	fmt.Fprintln(t)
	for _, f := range d.info.Facts {
		fmt.Fprintf(t, "       %s: %s\n", f[0], f[1])
	}
	printNodes(t, d.Nodes)
	if all {
		printScales(t, d.info.Nodes)
	}
}

// printScales lists a delegate's nodes with the scales and zero points of their values, if any has some.
func printScales(t *tabwriter.Writer, nodes []delegate.Node) {
	is := func(a delegate.Attribute) bool {
		return strings.Contains(a.Name, "scale") || strings.Contains(a.Name, "zero point")
	}
	if !slices.ContainsFunc(nodes, func(n delegate.Node) bool { return slices.ContainsFunc(n.Attributes, is) }) {
		return
	}
	for i, n := range nodes {
		var scales []string
		for _, a := range n.Attributes {
			if is(a) {
				scales = append(scales, a.Name+" "+valuetext.Text(a.Value))
			}
		}
		fmt.Fprintf(t, "         %d %s: %s\n", i, cli.Printable(n.Name), cli.Printable(n.Detail))
		if len(scales) > 0 {
			fmt.Fprintf(t, "             %s\n", cli.Printable(strings.Join(scales, ", ")))
		}
	}
}

// printNodes counts a delegate's nodes by name, the most frequent first.
func printNodes(t *tabwriter.Writer, nodes []nodeReport) {
	if len(nodes) == 0 {
		return
	}
	counts := make(map[string]int)
	for _, n := range nodes {
		counts[n.Name]++
	}
	names := sortedKeys(counts)
	sort.SliceStable(names, func(i, k int) bool { return counts[names[i]] > counts[names[k]] })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s ×%d", name, counts[name])
	}
	fmt.Fprintf(t, "       %s: %s\n", cli.Count(len(nodes), "node", "nodes"), strings.Join(names, ", "))
}

func (m *methodReport) printTogether(t *tabwriter.Writer) {
	switch r := m.Together; {
	case r == nil:
	case r.Reason != "":
		fmt.Fprintf(t, "  several instances: %s\n", cli.Printable(r.Reason))
	default:
		fmt.Fprintf(t, "  several instances: %s run once for all of them, %d in each\n", cli.Count(r.Batched, "instruction", "instructions"), r.Separate)
	}
}

func (m *memoryReport) print(t *tabwriter.Writer) {
	file := int64(0)
	for _, a := range m.FileArenas {
		file += a
	}
	fmt.Fprintf(t, "  memory: constants %s, planned by the file %s in %s", bytesize.Format(m.Constants), bytesize.Format(file), cli.Count(len(m.FileArenas), "arena", "arenas"))
	if m.Source != "" {
		state := bytesize.Format(m.State)
		if m.HalfState {
			state += " as float16"
		}
		fmt.Fprintf(t, "; in use: %s (plan: %s, state %s, lower bound %s)", bytesize.Format(m.Planned), m.Source, state, bytesize.Format(m.LowerBound))
	}
	if m.Released > 0 {
		fmt.Fprintf(t, "; constants given back %s", bytesize.Format(m.Released))
	}
	if m.Packed+m.Scratch > 0 {
		fmt.Fprintf(t, "; delegates: packed weights %s, working memory at most %s", bytesize.Format(m.Packed), bytesize.Format(m.Scratch))
	}
	fmt.Fprintln(t)
	if m.Conflicts > 0 {
		fmt.Fprintf(t, "  the file's plan overlaps %s of live storages; it is not used\n", cli.Count(m.Conflicts, "pair", "pairs"))
	}
}
