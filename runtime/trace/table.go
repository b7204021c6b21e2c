package trace

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// Row is the sum of the events of one name.
type Row struct {
	Kind  Kind
	Name  string
	Calls int // per run, on average
	Total time.Duration
	Share float64 // of the executes' time; nodes are part of their delegate
}

// Summary sums events by kind and name, the longest first. Total is per run.
func (r *Recorder) Summary() []Row {
	type key struct {
		kind Kind
		name string
	}
	rows := make(map[key]*Row)
	var whole time.Duration
	runs := 0
	for _, e := range r.Events {
		if e.Kind == Execute {
			whole += e.End - e.Start
			runs++
			continue
		}
		row := rows[key{e.Kind, e.Name}]
		if row == nil {
			row = &Row{Kind: e.Kind, Name: e.Name}
			rows[key{e.Kind, e.Name}] = row
		}
		row.Calls++
		row.Total += e.End - e.Start
	}
	list := make([]Row, 0, len(rows))
	for _, row := range rows {
		row.Share = float64(row.Total) / float64(max(whole, 1)) // both over all runs
		row.Calls /= max(runs, 1)
		row.Total /= time.Duration(max(runs, 1))
		list = append(list, *row)
	}
	slices.SortFunc(list, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// WriteTable writes the summary for people.
func (r *Recorder) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "time/run\tshare\tcalls\tkind\t  name")
	for _, row := range r.Summary() {
		fmt.Fprintf(t, "%v\t%.1f %%\t%d\t%v\t  %s\n", row.Total.Round(10*time.Nanosecond), 100*row.Share, row.Calls, row.Kind, row.Name)
	}
	return t.Flush()
}
