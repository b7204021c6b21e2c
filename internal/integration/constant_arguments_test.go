//go:build linux

package integration

import (
	"bytes"
	"context"
	"os"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// constantArgument returns the first call of a delegate with a constant argument, and the argument's position.
func constantArgument(m *pte.Method) (call, arg int) {
	for i, in := range m.Chains[0].Instructions {
		if in.Kind != pte.DelegateCall {
			continue
		}
		for k, v := range in.Args {
			if t := m.Values[v].Tensor; t != nil && t.Storage == pte.Constant {
				return i, k
			}
		}
	}
	return -1, -1
}

// Two calls of one delegate may have different constants: neither is one of the payload.
func TestConstantArgumentOfOneCall(t *testing.T) {
	for _, name := range []string{"../../testdata/pte/conv_portable.pte", "../../testdata/pte/split_passthrough.pte", "../../testdata/stream/detector.pte"} {
		t.Run(name, func(t *testing.T) { checkTwoCalls(t, name) })
	}
}

// checkTwoCalls calls a delegate of a lowered program with zeros for a constant, and again as it is: the second call has the results.
func checkTwoCalls(t *testing.T, name string) {
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	low, err := lowerFile(data, true, false)
	if err != nil {
		t.Fatal(err)
	}
	want := firstOutput(t, low.Data.Bytes())
	spec, err := pte.Parse(low.Data.Bytes(), pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m := &spec.Methods[0]
	call, arg := constantArgument(m)
	if call < 0 {
		t.Fatal("no delegate has a constant argument")
	}
	list := &m.Chains[0].Instructions
	other := m.Values[(*list)[call].Args[arg]]
	zeros := *other.Tensor
	zeros.Data = make([]byte, len(zeros.Data))
	other.Tensor = &zeros
	m.Values = append(m.Values, other)
	first := (*list)[call]
	first.Args = slices.Clone(first.Args)
	first.Args[arg] = len(m.Values) - 1
	*list = slices.Insert(*list, call, first)
	if got := firstOutput(t, ptetest.Write(spec, ptetest.Layout{})); !bytes.Equal(got, want) {
		t.Errorf("got %v, want %v", tensor.View[float32](got), tensor.View[float32](want))
	}
}

// firstOutput returns the elements of the first output of a program on inputs of ones.
func firstOutput(t *testing.T, data []byte) []byte {
	t.Helper()
	p, err := etrun.Parse(data, etrun.WithLowering(etrun.LowerOff), etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo}))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := p.Load(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for i, meta := range m.Meta().Inputs {
		x := tensor.New(tensor.Float32, meta.Sizes...)
		for k := range tensor.Data[float32](x) {
			tensor.Data[float32](x)[k] = 1
		}
		if err := m.SetValue(i, tensor.TensorValue(x)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Execute(context.Background()); err != nil {
		t.Fatal(err)
	}
	y, err := m.Output(0)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(y.Tensor.Data)
}
