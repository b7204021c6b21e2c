package ptetest

import (
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Payloads returns the payloads of a program for a backend, with the arguments of their first calls, for
// [github.com/etrun-go/etrun/delegate/delegatetest.Run].
func Payloads(tb testing.TB, program []byte, backend string) (list []*delegate.Payload) {
	tb.Helper()
	p, err := pte.Parse(program, pte.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range p.Methods {
		m := &p.Methods[i]
		for c := range m.Chains {
			for _, in := range m.Chains[c].Instructions {
				if in.Kind != pte.DelegateCall || m.Delegates[in.Index].ID != backend ||
					slices.ContainsFunc(list, func(known *delegate.Payload) bool { return known.Method == m.Name && known.Index == in.Index }) {
					continue
				}
				list = append(list, payload(p, m, &in))
			}
		}
	}
	if len(list) == 0 {
		tb.Fatalf("no call of a payload for %q", backend)
	}
	return list
}

// payload returns the payload of a call.
func payload(p *pte.Program, m *pte.Method, in *pte.Instruction) *delegate.Payload {
	d := &m.Delegates[in.Index]
	x := &delegate.Payload{Method: m.Name, Index: in.Index, Data: d.Data, Named: named(p.Named)}
	for _, s := range d.Specs {
		x.Specs = append(x.Specs, delegate.CompileSpec{Key: s.Key, Value: s.Value})
	}
	for _, v := range in.Args {
		if m.Values[v].Kind != tensor.KindTensor {
			x.Args = append(x.Args, nil)
			continue
		}
		t := m.Values[v].Tensor
		a := &delegate.ArgSpec{Value: v, DType: t.DType, Sizes: t.Sizes, DimOrder: t.DimOrder, Dynamism: t.Dynamism}
		if t.Storage == pte.Constant {
			a.Const = t.Data
		}
		x.Args = append(x.Args, a)
	}
	return x
}

// named is the named data of a program.
type named map[string][]byte

func (n named) Named(key string) ([]byte, bool) {
	data, ok := n[key]
	return data, ok
}
