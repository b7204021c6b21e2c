package etrun

import (
	"context"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
	"testing"
)

// flowMethods returns a program with methods of flowOps. They may read state that nothing writes.
func flowMethods(specs []pte.Method, options ...Option) *Program {
	c := newConfig(append([]Option{WithOperatorSet(kernels.NewSet(exectest.WordOps)), WithThreads(1), WithoutRepair()}, options...))
	p := &Program{config: c, spec: &pte.Program{Methods: specs}}
	p.makeSlots()
	return p
}

func loadFlow(t *testing.T, spec *pte.Method, mode PlanMode, options ...MethodOption) *Method {
	t.Helper()
	named := *spec
	named.Name = "forward"
	m, err := flowMethods([]pte.Method{named}, WithPlan(mode)).Load(context.Background(), "forward", options...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func setFlowInputs(t *testing.T, m *Method, run int) {
	t.Helper()
	for i, in := range m.Meta().Inputs {
		if err := m.SetInput(i, flowInput(&in, i, run)); err != nil {
			t.Fatal(err)
		}
	}
}

// flowInput returns the value of input i in a run.
func flowInput(in *ValueMeta, i, run int) *tensor.Tensor {
	x := in.NewTensor()
	exectest.FillWords(x, i, run)
	return x
}
