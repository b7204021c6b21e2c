package layers

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// programPair has two programs of the same model: B has only some of the values of A, in another order of branches, some
// in channels-last order, and one of its operators may be different.
type programPair struct {
	*rand.Rand
	a, b  Recorder
	kept  []int        // indexes in B of A's values, -1 for none
	taint map[int]bool // of A: what depends on the different operator
}

// sizesOf is the shape of all values, an image.
var sizesOf = []int{1, 3, 2, 4}

func (x *programPair) value(numbers []float32, last bool) *tensor.Value {
	t := tensor.Of(numbers, sizesOf...)
	if last {
		c := &candidate{sizes: []int{1, 2, 4, 3}}
		t = tensor.Of(c.lastOf(&candidate{sizes: sizesOf, numbers: numbers}), 1, 2, 4, 3)
	}
	v := tensor.TensorValue(t)
	return &v
}

// newProgramPair makes n operators, of which planted is different in B.
func newProgramPair(seed uint64, n, planted int) *programPair {
	x := &programPair{Rand: rand.New(rand.NewPCG(seed, 7)), taint: make(map[int]bool)}
	var as, bs [][]float32
	for i := range n {
		from := x.sources(i)
		weights := [24]float32{}
		for k := range weights {
			weights[k] = x.Float32() - 0.5
		}
		bad := i == planted
		for _, f := range from {
			bad = bad || x.taint[f]
		}
		x.taint[i] = bad
		as, bs = append(as, compute(weights[:], as, from, 0)), append(bs, nil)
		if bs[i] = as[i]; bad {
			more := float32(0)
			if i == planted {
				more = 0.3
			}
			bs[i] = compute(weights[:], bs, from, more)
		}
		x.add(i, from, as[i], bs[i], i == planted || x.IntN(3) > 0)
	}
	return x
}

// sources are one or two of the last values, so that branches are common.
func (x *programPair) sources(i int) (from []int) {
	if i == 0 {
		return nil
	}
	from = append(from, max(0, i-1-x.IntN(3)))
	if x.IntN(3) == 0 {
		from = append(from, max(0, i-1-x.IntN(6)))
	}
	return unique(from)
}

// compute is an operator: a sum of operands, scaled and shifted.
func compute(weights []float32, values [][]float32, from []int, more float32) []float32 {
	y := make([]float32, len(weights))
	for k, w := range weights {
		y[k] = w + more
		for _, f := range from {
			y[k] += values[f][(k*7+3)%len(y)] * (w + 1)
		}
	}
	return y
}

// add adds a value to A, and to B if it is kept there.
func (x *programPair) add(i int, from []int, a, b []float32, keep bool) {
	place := Place{Instruction: i, Delegate: -1, Node: -1}
	x.a.all = append(x.a.all, Written{Place: place, Value: x.value(a, false), from: from})
	if x.kept = append(x.kept, -1); !keep {
		return
	}
	x.kept[i] = len(x.b.all)
	x.b.all = append(x.b.all, Written{Place: place, Value: x.value(b, x.IntN(2) == 0), from: unique(x.through(from))})
}

// through replaces values that B does not have by what they are computed from.
func (x *programPair) through(from []int) (list []int) {
	for _, f := range from {
		if x.kept[f] >= 0 {
			list = append(list, x.kept[f])
		} else {
			list = append(list, x.through(x.a.all[f].from)...)
		}
	}
	return list
}

// TestTraceFindsThePlantedOperator changes one operator in random programs with branches; it must be the first
// value that is not found, and in programs without a change all values are found.
func TestTraceFindsThePlantedOperator(t *testing.T) {
	tol := kernels.Tolerance{Abs: 1e-5, Rel: 1e-4}
	for seed := range uint64(600) {
		n := 4 + int(seed%29)
		planted := int(seed*7) % n
		if seed%4 == 0 {
			planted = n // none
		}
		x := newProgramPair(seed, n, planted)
		got := traceValues(t.Context(), &x.a, &x.b, tol)
		name := fmt.Sprintf("seed %d, %d operators, %d different", seed, n, planted)
		if planted == n {
			if got.First != nil || got.Found != len(x.b.all) || got.Looked != got.Found {
				t.Fatalf("%s: %d of %d found, first missing %+v", name, got.Found, got.Looked, got.First)
			}
			continue
		}
		if got.First == nil || got.First.Instruction != planted {
			t.Fatalf("%s: first missing %+v", name, got.First)
		}
		for i, b := range x.kept {
			if b >= 0 {
				if _, found := got.found[x.b.all[b].Value]; found == x.taint[i] {
					t.Fatalf("%s: operator %d: found is %v", name, i, found)
				}
			}
		}
	}
}

// Values that are equal by chance, here zeros, do not hide the layer before them.
func TestTraceIsNotMisledByZeros(t *testing.T) {
	x := &programPair{Rand: rand.New(rand.NewPCG(1, 1))}
	one, zero, other, last := make([]float32, 24), make([]float32, 24), make([]float32, 24), make([]float32, 24)
	for i := range one {
		one[i], other[i], last[i] = float32(i), float32(2*i+1), float32(i*i)
	}
	x.add(0, nil, one, one, true)
	x.add(1, []int{0}, one, other, true) // different in B
	x.add(2, []int{1}, zero, zero, true) // a ReLU, say
	x.add(3, []int{2, 1}, one, last, true)
	if got := traceValues(t.Context(), &x.a, &x.b, kernels.Tolerance{Abs: 1e-6}); got.First == nil || got.First.Instruction != 1 {
		t.Errorf("first missing %+v, found %d", got.First, got.Found)
	}
}

// TestDistances measures values in the order of elements in which they were found: images, signals and volumes in channels-last
// order, with and without dimensions of size 1, also where the sizes are the same in both orders.
func TestDistances(t *testing.T) {
	for _, tt := range []struct {
		name    string
		a, b    []int
		last    bool // B is in channels-last order
		planted float32
	}{
		{"image", []int{1, 3, 2, 4}, []int{1, 2, 4, 3}, true, 0},
		{"the same sizes in both orders", []int{1, 4, 4, 4}, []int{1, 4, 4, 4}, true, 0},
		{"the same order", []int{1, 4, 4, 4}, []int{1, 4, 4, 4}, false, 0},
		{"signal", []int{2, 3, 8}, []int{2, 8, 3}, true, 0},
		{"signal as an image", []int{2, 3, 8}, []int{2, 1, 8, 3}, true, 0},
		{"volume", []int{2, 3, 2, 2, 4}, []int{2, 2, 2, 4, 3}, true, 0},
		{"a fault", []int{1, 3, 2, 4}, []int{1, 2, 4, 3}, true, 0.5},
		{"a fault in the same order", []int{1, 4, 4, 4}, []int{1, 4, 4, 4}, false, 0.5},
	} {
		n := 1
		for _, size := range tt.a {
			n *= size
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = float32((i*7919)%1009) / 100
		}
		y := append([]float32{}, x...)
		if tt.last {
			channels, pixels := tt.a[1], n/tt.a[0]/tt.a[1]
			for i := range x {
				y[(i/(channels*pixels)*pixels+i%pixels)*channels+i/pixels%channels] = x[i]
			}
		}
		y[5] += tt.planted
		recorded := func(operator string, numbers []float32, sizes []int) *Recorder {
			v := tensor.TensorValue(tensor.Of(numbers, sizes...))
			w := Written{Place: Place{Delegate: -1, Node: -1, Operator: operator}, Value: &v}
			return &Recorder{List: []Written{w}, flow: flow{all: []Written{w}}}
		}
		a, b := recorded("a", x, tt.a), recorded("b", y, tt.b)
		pairs, traced := Counterparts(t.Context(), a, b, true, true, kernels.Tolerance{Abs: 1e-3})
		pairs = append(pairs, traced.Pairs(b.List)...)
		if len(pairs) != 1 {
			t.Errorf("%s: %d pairs", tt.name, len(pairs))
			continue
		}
		if d := pairs[0].Distance(kernels.Tolerance{}); float32(d.MaxAbs) < tt.planted-1e-4 || float32(d.MaxAbs) > tt.planted+1e-4 {
			t.Errorf("%s: distance %v, want %v", tt.name, d.MaxAbs, tt.planted)
		}
	}
}
