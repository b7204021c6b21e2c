// Package profile says where the time of runs went, by instruction, by operator and by
// node inside delegates. Times are medians over runs: one stall does not change them.
package profile

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/etrun-go/etrun/runtime/trace"
)

// Profile is what was seen of the runs of one method.
type Profile struct {
	Method string
	Runs   int
	Median time.Duration // of a whole run
	Max    time.Duration
	Rows   []Row // by instruction, in the order of the program, and last what is between them
}

// Row is what an instruction, all instructions of an operator, or a node takes in a run.
type Row struct {
	Kind        string // as in trace.Kind; "outside" for what no instruction or no node takes
	Name        string
	Chain       int // -1 where a row is of several instructions, or of none
	Instruction int // -1 likewise
	Node        int // in its delegate, else -1
	Calls       int // per run, the median
	Median      time.Duration
	Max         time.Duration
	Share       float64 // of the run: those of Rows add up to 1, those of Parts to their row's
	Parts       []Row   // nodes of a delegate, and what is outside them

	took []time.Duration // by run
}

// settle computes median and maximum.
func (r *Row) settle() { r.Median, r.Max = median(slices.Clone(r.took)), slices.Max(r.took) }

// Names of the rows for what is left.
const (
	outsideInstructions = "outside instructions"
	outsideNodes        = "outside nodes"
	outside             = "outside"
)

// New makes a profile of each method that was executed without an error, in the order of
// their first runs. Runs whose execute is not among the events are left out.
func New(events []trace.Event) []*Profile {
	var methods []string
	runs := make(map[string][]*run)
	open := make(map[int64]*run)
	for i := range events {
		e := &events[i]
		if !(trace.Instructions | trace.Nodes | 1<<trace.Execute).Has(e.Kind) {
			continue
		}
		r := open[e.Run]
		if r == nil {
			r = &run{}
			open[e.Run] = r
		}
		if e.Kind != trace.Execute {
			r.add(e)
			continue
		}
		delete(open, e.Run)
		if r.whole = e.Duration(); e.Err != nil {
			continue
		}
		if runs[e.Method] == nil {
			methods = append(methods, e.Method)
		}
		runs[e.Method] = append(runs[e.Method], r)
	}
	var list []*Profile
	for _, name := range methods {
		list = append(list, newProfile(name, runs[name]))
	}
	return list
}

func newProfile(method string, runs []*run) *Profile {
	p := &Profile{Method: method, Runs: len(runs)}
	whole := make([]time.Duration, len(runs))
	for i, r := range runs {
		whole[i] = r.whole
	}
	p.Median, p.Max = median(whole), slices.Max(whole)
	t := &table{runs: len(runs), rows: make(map[place]*series)}
	for i, r := range runs {
		t.addRun(i, r)
	}
	p.Rows = t.list()
	share(p.Rows, 1)
	return p
}

// share spreads a whole over rows by their medians, and each row's share over its parts.
func share(rows []Row, whole float64) {
	var sum time.Duration
	for i := range rows {
		sum += rows[i].Median
	}
	for i := range rows {
		if rows[i].Share = 0; sum > 0 {
			rows[i].Share = whole * float64(rows[i].Median) / float64(sum)
		}
		share(rows[i].Parts, rows[i].Share)
	}
}

// ByOperator joins rows of one kind and name, the longest first; what is outside is last.
func (p *Profile) ByOperator() []Row {
	list := merge(p.Rows)
	for i := range list {
		list[i].Parts = merge(list[i].Parts)
	}
	share(list, 1)
	return list
}

// merge adds up, run by run, the rows of one kind and name.
func merge(rows []Row) []Row {
	type key struct{ kind, name string }
	index := make(map[key]int)
	var list []Row
	for i := range rows {
		r := rows[i]
		at, ok := index[key{r.Kind, r.Name}]
		if !ok {
			index[key{r.Kind, r.Name}] = len(list)
			r.took, r.Parts = slices.Clone(r.took), slices.Clone(r.Parts)
			list = append(list, r)
			continue
		}
		sum := &list[at]
		sum.Chain, sum.Instruction, sum.Node = -1, -1, -1
		sum.Calls += r.Calls
		for k := range sum.took {
			sum.took[k] += r.took[k]
		}
		sum.Parts = append(sum.Parts, r.Parts...)
	}
	for i := range list {
		list[i].settle()
	}
	slices.SortStableFunc(list, func(a, b Row) int {
		return cmp.Or(cmp.Compare(last(&a), last(&b)), cmp.Compare(b.Median, a.Median))
	})
	return list
}

func last(r *Row) int {
	if r.Kind == outside {
		return 1
	}
	return 0
}

// Place is where an instruction stands, empty for rows of several.
func (r *Row) Place() string {
	switch {
	case r.Node >= 0:
		return fmt.Sprintf("node %d", r.Node)
	case r.Instruction < 0:
		return ""
	case r.Chain > 0:
		return fmt.Sprintf("%d:%d", r.Chain, r.Instruction)
	}
	return fmt.Sprint(r.Instruction)
}

// median sorts took.
func median(took []time.Duration) time.Duration {
	slices.Sort(took)
	return (took[(len(took)-1)/2] + took[len(took)/2]) / 2
}
