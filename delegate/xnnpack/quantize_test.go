package xnnpack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// floatPayloadOf returns the payload of a graph, and the arguments of a call.
func (w *callMaker) floatPayloadOf(written *lowering.Written) (*delegate.Payload, []*tensor.Value) {
	p := &delegate.Payload{Data: encoded(written), Threads: 1}
	args := w.arguments()
	var extra []*tensor.Value
	for i := range written.Constants {
		c := &written.Constants[i]
		x := tensor.Make(c.DType, c.Sizes, nil, tensor.Static)
		x.Bind(c.Data)
		x.Const = true
		extra = append(extra, new(tensor.TensorValue(x)))
	}
	args = slices.Insert(args, len(w.g.Inputs), extra...)
	p.Args = describedArgs(args)
	return p, args
}

// describedArgs describes the arguments of a payload.
func describedArgs(args []*tensor.Value) (list []*delegate.ArgSpec) {
	for i, a := range args {
		s := &delegate.ArgSpec{Value: i, DType: a.Tensor.DType, Sizes: a.Tensor.Sizes, DimOrder: a.Tensor.DimOrder}
		if a.Tensor.Const {
			s.Const = a.Tensor.Data
		}
		list = append(list, s)
	}
	return list
}

// leastRatios are the lowest ratios of signal to noise of a layer, in decibels. Inputs of one sign and of few elements have the lowest.
var leastRatios = map[lowering.SchemeName]float64{lowering.Dynamic8: 15, lowering.Static8: 12, lowering.Weights8: 25, lowering.Dynamic4: 5}

// TestQuantizedGraphs quantizes random graphs with all schemes. Each layer must be near the one of floats, and the payload must run.
func TestQuantizedGraphs(t *testing.T) {
	layers := make(map[string]int)
	for seed := range uint64(rounds(120)) {
		w := randomCalls(seed+1<<21, 10, false)
		if len(w.g.Outputs) == 0 {
			continue
		}
		written, err := Writer{Backend{Engine: EngineGo}}.Write(w.g)
		if errors.Is(err, delegate.ErrUnsupported) {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, w)
		}
		for _, name := range lowering.SchemeNames {
			s := lowering.Scheme{Name: name, All: true, Group: 32, Observer: lowering.Observers[int(seed)%len(lowering.Observers)]}
			if err := w.quantizes(written, s, layers); err != nil {
				t.Fatalf("seed %d, %s: %v\n%s", seed, name, err, w)
			}
		}
	}
	for _, want := range []string{"dq8 FullyConnected", "dq8 Conv2d", "q8 FullyConnected", "q8 Conv2d", "q8 Add", "q8 Multiply",
		"w8 FullyConnected"} {
		if layers[want] == 0 {
			t.Errorf("no %s among %v: the test shows little", want, layers)
		}
	}
}

// quantizes quantizes a payload, and counts its layers.
func (w *callMaker) quantizes(written *lowering.Written, s lowering.Scheme, count map[string]int) error {
	by := Writer{Backend{Engine: EngineGo}}
	p, args := w.floatPayloadOf(written)
	f, err := by.OpenFloats(p, s)
	if err != nil {
		return err
	}
	for _, image := range []func(context.Context, *delegate.Payload) (delegate.Image, error){f.Calibrate, f.Measure} {
		img, err := image(context.Background(), p)
		if err == nil {
			err = executeImage(img, args)
			img.Close()
		}
		if err != nil {
			return err
		}
	}
	x, err := f.Write(func(int) bool { return false })
	if x == nil || err != nil {
		return err
	}
	for _, l := range x.Quantized {
		y := f.Layers()[l]
		count[string(s.Name)+" "+y.Type]++
		if ratio := 10 * math.Log10(y.Signal/y.Noise); y.Signal > 1e-9 && ratio < leastRatios[s.Name] {
			return fmt.Errorf("layer %d (%s %v) at node %d: %.1f dB", l, y.Type, y.Sizes, y.Node, ratio)
		}
	}
	return runsQuantized(x, args)
}

// runsQuantized runs a quantized payload with both engines.
func runsQuantized(x *lowering.Quantized, args []*tensor.Value) error {
	var list []*tensor.Value
	for _, k := range x.Inputs {
		list = append(list, args[k])
	}
	for i := range x.Constants {
		c := tensor.Make(x.Constants[i].DType, x.Constants[i].Sizes, nil, tensor.Static)
		c.Bind(x.Constants[i].Data)
		c.Const = true
		list = append(list, new(tensor.TensorValue(c)))
	}
	list = append(list, args[x.OldInputs:]...)
	for _, b := range compilers() {
		img, err := b.Compile(context.Background(), &delegate.Payload{Data: encoded(x.Written), Args: describedArgs(list)})
		if err == nil {
			err = executeImage(img, list)
			img.Close()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", b.Engine, err)
		}
	}
	return nil
}
