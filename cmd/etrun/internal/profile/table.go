package profile

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/etrun-go/etrun/runtime/trace"
)

// run holds the events of one run.
type run struct {
	whole time.Duration
	spans []span
}

// span is one event.
type span struct {
	place
	kind trace.Kind
	name string
	took time.Duration
}

// place is a location in a method: an instruction, or a node of the delegate that it calls.
type place struct {
	chain, instruction, node int
}

func (r *run) add(e *trace.Event) {
	at := place{e.Chain, e.Instruction, -1}
	if e.Kind == trace.Node {
		at.node = e.Index
	}
	r.spans = append(r.spans, span{at, e.Kind, e.Name, e.Duration()})
}

// series is the times of a place, one per run: the sum if the place is executed several times.
type series struct {
	kind  string
	name  string
	took  []time.Duration
	calls []int
}

// table holds the series of all places.
type table struct {
	runs int
	rows map[place]*series
	rest []time.Duration // outside instructions, by run
}

// addRun adds the events of run i.
func (t *table) addRun(i int, r *run) {
	rest := r.whole
	for _, s := range r.spans {
		at := t.at(s.place, s.kind.String(), s.name)
		at.took[i] += s.took
		at.calls[i]++
		if s.kind != trace.Node {
			rest -= s.took
		}
	}
	t.rest = append(t.rest, max(rest, 0))
}

// at returns the series of a place.
func (t *table) at(p place, kind, name string) *series {
	s := t.rows[p]
	if s == nil {
		s = &series{kind: kind, name: name, took: make([]time.Duration, t.runs), calls: make([]int, t.runs)}
		t.rows[p] = s
	}
	return s
}

// list returns rows of all places, nodes below their delegates.
func (t *table) list() []Row {
	places := slices.Collect(maps.Keys(t.rows))
	sort.Slice(places, func(i, k int) bool {
		a, b := places[i], places[k]
		return cmp.Or(cmp.Compare(a.chain, b.chain), cmp.Compare(a.instruction, b.instruction), cmp.Compare(a.node, b.node)) < 0
	})
	var rows []Row
	var left []time.Duration // remaining time of the delegate outside its nodes
	for i, p := range places {
		s := t.rows[p]
		row := Row{Kind: s.kind, Name: s.name, Chain: p.chain, Instruction: p.instruction, Node: p.node, Calls: middle(s.calls), took: s.took}
		row.settle()
		if p.node < 0 {
			rows, left = append(rows, row), slices.Clone(s.took)
			continue
		}
		if len(rows) == 0 || rows[len(rows)-1].Chain != p.chain || rows[len(rows)-1].Instruction != p.instruction {
			continue // the call was not recorded
		}
		owner := &rows[len(rows)-1]
		owner.Parts = append(owner.Parts, row)
		for k := range left {
			left[k] = max(left[k]-s.took[k], 0)
		}
		if i+1 == len(places) || places[i+1].node < 0 {
			owner.Parts = append(owner.Parts, remainder(outsideNodes, owner.Calls, left))
		}
	}
	return append(rows, remainder(outsideInstructions, 1, t.rest))
}

// remainder returns a row for the remaining time.
func remainder(name string, calls int, left []time.Duration) Row {
	r := Row{Kind: outside, Name: name, Chain: -1, Instruction: -1, Node: -1, Calls: calls, took: left}
	r.settle()
	return r
}

// middle sorts counts and returns their median.
func middle(counts []int) int {
	slices.Sort(counts)
	return counts[len(counts)/2]
}
