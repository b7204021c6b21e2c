package compile

import (
	"fmt"

	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// keep adds method i as it is. Its constants and payloads get other numbers.
func (w *writer) keep(i int) error {
	from, plan := &w.spec.Methods[i], copied(nodes(w.file.Root, "execution_plan")[i])
	if from.Err != nil {
		return fmt.Errorf("a method that cannot be read: %w", from.Err)
	}
	var calls *quantizedCalls
	var unused []bool
	if w.quantized != nil {
		calls = w.quantizedCalls(i, plan)
		unused = calls.unused()
		plan.With("chains", calls.chains).With("operators", list(calls.operators(plan)))
	}
	var values []*tree.Node
	for v, n := range nodes(plan, "values") {
		if t := from.Values[v].Tensor; t != nil && unused != nil && unused[v] && (t.Storage == pte.Constant || t.Storage == pte.External) {
			n = evalue(tree.New("Null"))
		} else if t != nil && t.Storage == pte.Constant {
			n = w.constant(n, t.Data)
		}
		values = append(values, n)
	}
	var delegates []*tree.Node
	for d := range nodes(plan, "delegates") {
		if x := w.quantized[at{i, d}]; x != nil {
			delegates = append(delegates, w.quantizedDelegate(x, from.Delegates[d].ID))
			continue
		}
		delegates = append(delegates, w.delegate(plan, from, d))
	}
	if calls != nil {
		values = append(values, calls.added...)
		plan.With("non_const_buffer_sizes", tree.Scalars(w.roomBehind(i)))
	}
	plan.Fields["values"], plan.Fields["delegates"] = values, delegates
	w.plans = append(w.plans, plan)
	return nil
}

// roomBehind returns the sizes of a method's planned memory with room behind the values where arguments of quantized payloads are.
func (w *writer) roomBehind(i int) []int64 {
	m := &w.spec.Methods[i]
	sizes, ends, feeds := []int64{0}, make([]int64, len(m.Arenas)), w.feedsQuantized(i)
	for v := range m.Values {
		if t := planned(m, v); t != nil && t.Offset+t.NBytes() <= m.Arenas[t.Arena].Size { // else the result of an et_view
			ends[t.Arena] = max(ends[t.Arena], t.Offset+t.NBytes())
		}
	}
	for a := range m.Arenas {
		size := m.Arenas[a].Size
		if feeds[a] {
			size = max(size, pack.Align(ends[a], pack.Alignment)+readBehind)
		}
		sizes = append(sizes, size)
	}
	return sizes
}

// feedsQuantized reports for each arena of a method whether arguments of quantized payloads are in it.
func (w *writer) feedsQuantized(i int) []bool {
	m := &w.spec.Methods[i]
	feeds := make([]bool, len(m.Arenas))
	for c := range m.Chains {
		for k := range m.Chains[c].Instructions {
			in := &m.Chains[c].Instructions[k]
			if in.Kind != pte.DelegateCall || w.quantized[at{i, in.Index}] == nil {
				continue
			}
			for _, v := range in.Args {
				if t := planned(m, v); t != nil {
					feeds[t.Arena] = true
				}
			}
		}
	}
	return feeds
}

// planned returns a value that is a tensor in an arena, else nil.
func planned(m *pte.Method, v int) *pte.Tensor {
	if v < 0 || m.Values[v].Tensor == nil {
		return nil
	}
	switch t := m.Values[v].Tensor; t.Storage {
	case pte.Planned, pte.PlannedInit, pte.ExternalPlanned:
		return t
	}
	return nil
}

// constant returns a value of constant bytes, without a place in an arena.
func (w *writer) constant(value *tree.Node, data []byte) *tree.Node {
	value = copied(value)
	t := copied(value.Fields["val"].(*tree.Node))
	delete(t.Fields, "allocation_info")
	if w.external != nil && len(data) >= minShared {
		delete(t.Fields, "data_buffer_idx")
		t.With("extra_tensor_info", w.external.tensor(t, data))
	} else {
		t.With("data_buffer_idx", tree.Scalar(w.constants.add(data)))
	}
	return value.With("val", t)
}

// delegate returns entry d of a method's delegates with the number of its payload in the result.
func (w *writer) delegate(plan *tree.Node, from *pte.Method, d int) *tree.Node {
	n := copied(nodes(plan, "delegates")[d])
	at := n.Fields["processed"].(*tree.Node)
	segment := 0
	if scalar(at, "location") == 1 {
		segment = w.segment(int(scalar(at, "index")))
	} else {
		segment = w.payload(from.Delegates[d].Data)
	}
	if n.Fields["compile_specs"] == nil {
		n.With("compile_specs", []*tree.Node{})
	}
	return n.With("processed", inSegment(segment))
}

// inSegment refers to a payload in a segment.
func inSegment(i int) *tree.Node {
	return tree.New("BackendDelegateDataReference").With("location", tree.Scalar(1)).With("index", tree.Scalar(i))
}
