package xnnpack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/callstest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestWrittenGraphs writes random graphs as payloads, and compares what these compute with what the graphs do: the same bytes
// on the Go engine, close numbers on the library.
func TestWrittenGraphs(t *testing.T) {
	for _, quantized := range []bool{false, true} {
		rounds, refused, constants := graphtest.Rounds(150), 0, 0
		for seed := range uint64(rounds) {
			w := callstest.NewRandom(seed+1<<20, 12, quantized, Backend{}.Accepts)
			if len(w.Graph.Outputs) == 0 {
				continue
			}
			written, err := Writer{Backend: Backend{Engine: EngineGo}}.Write(w.Graph)
			if errors.Is(err, delegate.ErrUnsupported) {
				refused++
				continue
			}
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, w)
			}
			constants += len(written.Constants)
			if err := compareWritten(w, written); err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, w)
			}
			again, err := Writer{Backend: Backend{Engine: EngineGo}}.Write(w.Graph)
			if err != nil || !bytes.Equal(encoded(again), encoded(written)) {
				t.Fatalf("seed %d: written again: %v, want the same bytes", seed, err)
			}
		}
		if refused > rounds/4 || constants == 0 {
			t.Errorf("quantized %v: %d of %d graphs are refused, %d constants as inputs: the test shows little", quantized, refused, rounds, constants)
		}
	}
}

// A payload returns no result without dimensions: runtimes would get one of a dimension. Inside of a payload there may be some.
func TestWrittenWithoutDimensions(t *testing.T) {
	w := Writer{Backend: Backend{Engine: EngineGo}}
	for inside, want := range map[bool]error{false: delegate.ErrUnsupported, true: nil} {
		c := callstest.New(1)
		last := c.Do("aten::abs.out", 0, c.Input())
		if why := w.Accepts(c.Graph, 0); why != noDims {
			t.Errorf("the call is accepted: %q, want %q", why, noDims)
		}
		if inside {
			last = c.Do("aten::mul.out", 2, c.Input(2, 3), last)
		}
		if _, err := w.Write(c.Outputs(last).Graph); !errors.Is(err, want) {
			t.Errorf("inside %v: got %v, want %v", inside, err, want)
		}
	}
}

// What an operator refuses is not written: the runtimes repeat operands of size 1. Sizes may vary up to those declared, each in its own way
// unless that is known.
func TestWrittenWithoutRepeats(t *testing.T) {
	for _, x := range []struct {
		name string
		make func(c *callstest.Calls) callstest.Val
		want error
	}{
		{"a sum with a matrix", func(c *callstest.Calls) callstest.Val {
			return c.Do("aten::addmm.out", 2, c.Input(3, 5), c.Input(3, 7), c.Constant(7, 5), 1, 1)
		}, delegate.ErrUnsupported},
		{"a sum with a row", func(c *callstest.Calls) callstest.Val {
			return c.Do("aten::addmm.out", 2, c.Input(1, 5), c.Input(3, 7), c.Constant(7, 5), 1, 1)
		}, nil},
		{"a sum with what the product is of", func(c *callstest.Calls) callstest.Val {
			h := c.Input(3, 7)
			return c.Do("aten::addmm.out", 2, h, c.Do("aten::abs.out", 2, h), c.Constant(7, 7), 1, 1)
		}, nil},
		{"a product of batches", func(c *callstest.Calls) callstest.Val {
			return c.Do("aten::bmm.out", 3, c.Input(2, 3, 5), c.Input(2, 5, 4))
		}, delegate.ErrUnsupported},
		{"a batch norm of any channels", func(c *callstest.Calls) callstest.Val { return batchNorm(c, c.Input(3, 5)) }, delegate.ErrUnsupported},
		{"a batch norm of a layer's channels", func(c *callstest.Calls) callstest.Val {
			return batchNorm(c, c.Do("aten::linear.out", 2, c.Input(3, 7), c.Constant(5, 7), nil))
		}, nil},
	} {
		for _, varies := range []bool{false, true} {
			c := callstest.New(1)
			c.Outputs(x.make(c))
			want := error(nil)
			if varies {
				want = x.want
				c.Dynamic()
			}
			if _, err := (Writer{Backend: Backend{Engine: EngineGo}}).Write(c.Graph); !errors.Is(err, want) {
				t.Errorf("%s, of sizes that vary: %v: got %v, want %v", x.name, varies, err, want)
			}
		}
	}
}

// batchNorm normalizes the second dimension, of 5 channels.
func batchNorm(c *callstest.Calls, x callstest.Val) callstest.Val {
	none := callstest.Out{Rank: 1}
	return c.Call("aten::_native_batch_norm_legit_no_training.out", []callstest.Out{{Rank: 2}, none, none}, x, c.Constant(5), c.Constant(5),
		c.Constant(5), c.ConstantOf(c.Repeated(5)), 0.1, 1e-5)[0]
}

// TestWrittenTargets writes graphs for the first release and the last one: this has nodes that the first has not.
func TestWrittenTargets(t *testing.T) {
	last, err := ParseTarget("1.5")
	if err != nil {
		t.Fatal(err)
	}
	more := 0
	for seed := range uint64(graphtest.Rounds(150)) {
		w := callstest.NewRandom(seed+1<<21, 12, false, Backend{}.Accepts)
		if len(w.Graph.Outputs) == 0 {
			continue
		}
		by := Writer{Backend: Backend{Engine: EngineGo}}
		_, first := by.Write(w.Graph)
		by.Target = last
		written, err := by.Write(w.Graph)
		switch {
		case first == nil && err != nil:
			t.Errorf("seed %d: for 1.5: %v, for 1.0 it is written", seed, err)
		case errors.Is(first, delegate.ErrUnsupported) && err == nil:
			more++
			if err := compareWritten(w, written); err != nil {
				t.Errorf("seed %d: %v\n%s", seed, err, w)
			}
		}
	}
	if more == 0 {
		t.Error("no graph needs a later release than 1.0: the test shows nothing")
	}
}

func TestParseTarget(t *testing.T) {
	for _, release := range []string{"1.0", "1.3", "1.5"} {
		if target, err := ParseTarget(release); err != nil || target.String() != release {
			t.Errorf("%s: %v, %v", release, target, err)
		}
	}
	for _, release := range []string{"", "1", "1.", "1.6", "1.05", "1.-1", "1.0.0", "2.0", "v1.0", "1.99999999999999999999"} {
		var fault *TargetError
		if _, err := ParseTarget(release); !errors.As(err, &fault) || !errors.Is(err, delegate.ErrUnsupported) {
			t.Errorf("%q: %v, want a *TargetError", release, err)
		}
	}
}

// compareWritten runs a graph and its payload.
func compareWritten(w *callstest.Random, written *lowering.Written) error {
	for _, b := range compilers() {
		direct, err := b.CompileGraph(context.Background(), w.Graph)
		if err != nil {
			continue // the library refuses it
		}
		want := w.Arguments()
		err = executeImage(direct, want)
		direct.Close()
		if err != nil {
			continue
		}
		img, err := b.Compile(context.Background(), &delegate.Payload{Data: encoded(written)})
		if err != nil {
			return fmt.Errorf("%s: %w", b.Engine, err)
		}
		args := w.Arguments()
		var extra []*tensor.Value
		for i := range written.Constants {
			c := &written.Constants[i]
			x := tensor.Make(c.DType, c.Sizes, nil, tensor.Static)
			x.Bind(c.Data)
			extra = append(extra, new(tensor.TensorValue(x)))
		}
		err = executeImage(img, slices.Insert(slices.Clone(args), len(w.Graph.Inputs), extra...))
		img.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", b.Engine, err)
		}
		for k := len(w.Graph.Inputs); k < len(args); k++ {
			got, x := args[k].Tensor, want[k].Tensor
			if b.Engine == EngineGo && !bytes.Equal(got.Data, x.Data) {
				return fmt.Errorf("output %d: other bytes than without a payload", k-len(w.Graph.Inputs))
			}
			if err := callstest.Near(got, x, 1e-4); err != nil {
				return fmt.Errorf("%s, output %d: %w", b.Engine, k-len(w.Graph.Inputs), err)
			}
		}
	}
	return nil
}

// executeImage runs an image once.
func executeImage(img delegate.Image, args []*tensor.Value) error {
	u, err := img.Unit(delegate.Instance{Pool: cpu.NewPool(1)})
	if err != nil {
		return err
	}
	defer u.Close()
	return u.Execute(context.Background(), args)
}

// encoded returns a payload that contains all its constants.
func encoded(w *lowering.Written) []byte {
	return slices.Concat(w.Encode(func(string) bool { return false })...)
}
