package xnnpack

import (
	"context"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/callstest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestCheck checks input sizes with Check before runs on both engines. Check writes no element, and
// the unit still runs after an error.
func TestCheck(t *testing.T) {
	c := callstest.New(5)
	x := c.Input(2, 3, 12, 10)
	c.Outputs(c.Do("aten::relu.out", 4, c.Convolve(x, 3, 4)))
	c.Dynamic()
	for _, b := range compilers() {
		img, err := b.CompileGraph(context.Background(), c.Graph)
		if err != nil {
			t.Fatal(b.Engine, err)
		}
		unit, err := img.Unit(delegate.Instance{})
		if err != nil {
			t.Fatal(b.Engine, err)
		}
		for i, tt := range []struct {
			sizes []int
			fits  bool
		}{
			{[]int{2, 3, 12, 10}, true}, {[]int{2, 4, 12, 10}, false}, {[]int{1, 3, 5, 7}, true}, {[]int{3, 3, 12, 10}, false},
			{[]int{1, 3, 5, 7}, true}, {[]int{1, 5, 5, 7}, false}, {[]int{1, 3, 5, 7}, true},
		} {
			in := tensor.New(tensor.Float32, tt.sizes...)
			out := tensor.Make(tensor.Float32, []int{2, 4, 12, 10}, nil, tensor.DynamicBound)
			bytes := tensor.AlignedBytes(out.NBytes())
			out.Bind(bytes)
			for k := range bytes {
				bytes[k] = 0x5A
			}
			a, y := tensor.TensorValue(in), tensor.TensorValue(out)
			args := []*tensor.Value{&a, &y}
			if err := unit.(lowering.Checker).Check(args); (err == nil) != tt.fits {
				t.Fatalf("%s, call %d of %v: got %v, want success %v", b.Engine, i, tt.sizes, err, tt.fits)
			}
			for k := range bytes {
				if bytes[k] != 0x5A {
					t.Fatalf("%s, call %d of %v: Check wrote byte %d", b.Engine, i, tt.sizes, k)
				}
			}
			if !tt.fits {
				continue
			}
			if err := unit.Execute(context.Background(), args); err != nil || out.Sizes[0] != tt.sizes[0] || out.Sizes[3] != tt.sizes[3] {
				t.Fatalf("%s, call %d of %v: got output sizes %v, error %v", b.Engine, i, tt.sizes, out.Sizes, err)
			}
		}
		if err := unit.Close(); err != nil {
			t.Error(err)
		}
		img.Close()
	}
}

// compilers returns a backend per available engine.
func compilers() (list []Backend) {
	list = append(list, Backend{Engine: EngineGo})
	if _, err := xnn.Open(xnntest.Path()); err == nil {
		list = append(list, Backend{Engine: EngineNative, Library: xnntest.Path()})
	}
	return list
}
