package compile

import (
	"fmt"

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
	}
	plan.Fields["values"], plan.Fields["delegates"] = values, delegates
	w.plans = append(w.plans, plan)
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
