package tensor

import (
	"math"
	"testing"
)

func TestResizeKeepsToCapacity(t *testing.T) {
	for _, c := range []struct {
		name string
		dyn  Dynamism
		from []int
		to   []int
		ok   bool
	}{
		{"static, same", Static, []int{2, 3}, []int{2, 3}, true},
		{"static, other", Static, []int{2, 3}, []int{3, 2}, false},
		{"bound, smaller", DynamicBound, []int{2, 3}, []int{1, 3}, true},
		{"bound, other form", DynamicBound, []int{2, 3}, []int{6, 1}, true},
		{"bound, larger", DynamicBound, []int{2, 3}, []int{2, 4}, false},
		{"bound, other rank", DynamicBound, []int{2, 3}, []int{6}, false},
		{"bound, huge but empty", DynamicBound, []int{2, 3}, []int{math.MaxInt, 0}, false},
		{"bound, negative", DynamicBound, []int{2, 3}, []int{-1, -6}, false},
		{"unbound, larger", DynamicUnbound, []int{2, 3}, []int{20, 30}, true},
		{"unbound, beyond the limit", DynamicUnbound, []int{2, 3}, []int{1 << 20, 1 << 20}, false},
		{"unbound, overflow", DynamicUnbound, []int{2, 3}, []int{math.MaxInt, math.MaxInt}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := Make(Float32, c.from, nil, c.dyn)
			x.Bind(AlignedBytes(x.NBytes()))
			err := x.Resize(c.to)
			if (err == nil) != c.ok {
				t.Fatalf("resize %v to %v: got error %v, want accepted: %v", c.from, c.to, err, c.ok)
			}
			if len(x.Data) != x.NBytes() {
				t.Errorf("%d bytes of data, want %d", len(x.Data), x.NBytes())
			}
		})
	}
}

func TestLimitEndsGrowth(t *testing.T) {
	x := Make(Int8, []int{1}, nil, DynamicUnbound)
	x.Limit(10)
	if err := x.Resize([]int{11}); err == nil {
		t.Error("11 elements accepted, the limit is 10")
	}
	if err := x.Resize([]int{10}); err != nil {
		t.Error(err)
	}
}

func TestResizeGivesAFreedTensorItsBytes(t *testing.T) {
	x := Make(Float32, []int{2, 3}, nil, DynamicUnbound)
	if err := x.Resize([]int{2, 3}); err != nil {
		t.Fatal(err)
	}
	if len(x.Data) != 24 {
		t.Errorf("%d bytes of data, want 24", len(x.Data))
	}
}

// TestResizeKeepsToBoundMemory resizes bounded tensors whose memory is shorter than their capacity, like
// that of the result of a view.
func TestResizeKeepsToBoundMemory(t *testing.T) {
	x := Make(Float32, []int{4, 4}, nil, DynamicBound)
	if err := x.BindSized([]int{2, 3}, make([]byte, 24)); err != nil {
		t.Fatal(err)
	}
	for _, sizes := range [][]int{{1, 2}, {3, 2}, {4, 2}, {4, 4}, {6, 1}} {
		err := x.Resize(sizes)
		if fits := sizes[0]*sizes[1] <= 6; (err == nil) != fits || len(x.Data) != x.NBytes() {
			t.Errorf("sizes %v in 24 bytes: %v, sizes %v with %d bytes", sizes, err, x.Sizes, len(x.Data))
		}
	}
	x.Bind(nil)
	if err := x.Resize([]int{4, 4}); err != nil {
		t.Errorf("without memory: %v", err)
	}
}
