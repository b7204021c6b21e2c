// Package profile computes the time of runs by instruction, by operator and by node inside
// delegates. Times are medians over runs, so that one stall does not change them.
package profile

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Profile is the profile of the runs of one method.
type Profile struct {
	Method string
	Runs   int
	Median time.Duration // time of a whole run
	Max    time.Duration
	Rows   []Row // by instruction, in the order of the program; last the time outside of them
}

// Row is the time of an instruction, of all instructions of an operator, or of a node.
type Row struct {
	Kind        string // as in trace.Kind; "outside" for the time outside instructions or nodes
	Name        string
	Chain       int    // -1 for a row of several instructions, or of none
	Instruction int    // -1 likewise
	Node        int    // index in its delegate, else -1
	Layer       string // module of the model, or the line of its source; empty if unknown or for a row of several
	Result      string // types and sizes of results at the declared sizes; likewise
	Calls       int    // median per run
	Median      time.Duration
	Max         time.Duration
	Share       float64 // of the run: those of Rows add up to 1, those of Parts to that of their row
	Parts       []Row   // nodes of a delegate, and the time outside of them

	took []time.Duration // by run
}

// settle computes median and maximum.
func (r *Row) settle() { r.Median, r.Max = stats.Median(r.took), slices.Max(r.took) }

// Names of the rows for the remaining time.
const (
	outsideInstructions = "outside instructions"
	outsideNodes        = "outside nodes"
	outside             = "outside"
)

// New returns a profile of each method that ran without an error, in the order of their
// first runs. Runs whose execute event is missing are ignored.
func New(events []trace.Event) []*Profile { return profiles(events, false) }

// NewIncomplete returns a profile of each method that ended with an error: of the instructions that were
// executed before. Runs is 0.
func NewIncomplete(events []trace.Event) []*Profile {
	list := profiles(events, true)
	for _, p := range list {
		p.Runs = 0
	}
	return list
}

// profiles returns the profiles of the runs that failed, or of those that did not.
func profiles(events []trace.Event, failed bool) []*Profile {
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
		if r.whole = e.Duration(); (e.Err != nil) != failed {
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
	p.Median, p.Max = stats.Median(whole), slices.Max(whole)
	t := &table{runs: len(runs), rows: make(map[place]*series)}
	for i, r := range runs {
		t.addRun(i, r)
	}
	p.Rows = t.list()
	share(p.Rows, 1)
	return p
}

// share distributes a whole over rows by their medians, and each row's share over its parts.
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

// ByOperator merges rows of one kind and name, the longest first; the outside row is last.
func (p *Profile) ByOperator() []Row {
	list := merge(p.Rows)
	for i := range list {
		list[i].Parts = merge(list[i].Parts)
	}
	share(list, 1)
	return list
}

// merge sums, run by run, the rows of one kind and name.
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
		sum.Chain, sum.Instruction, sum.Node, sum.Layer, sum.Result = -1, -1, -1, "", ""
		sum.Calls += r.Calls
		for k := range sum.took {
			sum.took[k] += r.took[k]
		}
		sum.Parts = append(sum.Parts, r.Parts...)
	}
	for i := range list {
		list[i].settle()
	}
	sort.SliceStable(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(b.Median, a.Median)) < 0
	})
	return list
}

func last(r *Row) int {
	if r.Kind == outside {
		return 1
	}
	return 0
}

// Place is the location of an instruction, empty for rows of several.
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
