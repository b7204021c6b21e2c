package delegatetest

import (
	"context"
	"errors"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// planned is an image of one input byte and one output byte, with two blocks that are used one after the
// other. in is the input, and own reports that the blocks are memory of the unit.
type planned struct {
	delegate.Image
	run func(blocks [][]byte, in, out []byte, own bool) error
}

func (planned) Needs() delegate.Needs { return delegate.Needs{Inputs: 1} }

func (planned) Workspace() *lowering.Workspace {
	return &lowering.Workspace{Moments: 2, Args: make([]lowering.Span, 2), Blocks: []lowering.Block{
		{Bytes: 100, Span: lowering.Span{First: 0, Last: 0}}, {Bytes: 100, Span: lowering.Span{First: 1, Last: 1}}}}
}

func (p planned) Unit(in delegate.Instance) (delegate.Unit, error) {
	u := &plannedUnit{run: p.run, blocks: in.Blocks}
	if u.own = in.Blocks == nil; u.own {
		u.blocks = [][]byte{make([]byte, 100, 101), make([]byte, 100, 101)}
	}
	return u, nil
}

type plannedUnit struct {
	run    func(blocks [][]byte, in, out []byte, own bool) error
	blocks [][]byte
	own    bool
}

func (u *plannedUnit) Execute(_ context.Context, args []*tensor.Value) error {
	return u.run(u.blocks, args[0].Tensor.Data, args[1].Tensor.Data, u.own)
}

func (*plannedUnit) Close() error { return nil }

// TestCheckPlanned runs units that keep the rules and units that do not.
func TestCheckPlanned(t *testing.T) {
	for _, c := range []struct {
		name string
		ok   bool
		run  func(blocks [][]byte, in, out []byte, own bool) error
	}{
		{"one block after the other", true, func(b [][]byte, in, out []byte, _ bool) error {
			b[0][0] = in[0]
			out[0] = b[0][0] + 1
			b[1][0] = out[0]
			out[0] += b[1][0]
			return nil
		}},
		{"always an error", true, func([][]byte, []byte, []byte, bool) error { return errors.New("no") }},
		{"an error in blocks", false, func(_ [][]byte, in, out []byte, own bool) error {
			if out[0] = in[0]; own {
				return nil
			}
			return errors.New("no")
		}},
		{"no output in blocks", false, func(_ [][]byte, in, out []byte, own bool) error {
			if own {
				out[0] = in[0]
			}
			return nil
		}},
		{"a changed input", false, func(_ [][]byte, in, out []byte, own bool) error {
			if out[0] = in[0]; !own {
				in[0]++
			}
			return nil
		}},
		{"a byte behind a block", false, func(b [][]byte, in, out []byte, _ bool) error {
			out[0] = in[0]
			b[1][:101][100] = 1
			return nil
		}},
		{"data from the call before", false, func(b [][]byte, in, out []byte, _ bool) error {
			out[0] = in[0] + b[0][5]
			b[0][5] = 0
			return nil
		}},
		{"a block after its last moment", false, func(b [][]byte, in, out []byte, _ bool) error {
			b[0][0] = in[0]
			b[1][0] = in[0] + 1
			out[0] = b[0][0]
			return nil
		}},
	} {
		var calls [][]*tensor.Value
		for i := range 2 {
			in, out := tensor.TensorValue(tensor.New(tensor.Uint8, 1)), tensor.TensorValue(tensor.New(tensor.Uint8, 1))
			in.Tensor.Data[0] = byte(3 + i)
			calls = append(calls, []*tensor.Value{&in, &out})
		}
		if err := CheckPlanned(planned{run: c.run}, nil, calls); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want an error: %v", c.name, err, !c.ok)
		}
	}
}
