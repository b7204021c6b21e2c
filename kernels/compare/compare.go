// Package compare (no compatibility promise) compares values with the expected ones within a
// tolerance: for tests, and for commands that verify outputs.
package compare

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// mismatch describes how a tensor differs from the one wanted.
type mismatch struct {
	Count, Of int   // number of differing elements, and of all elements
	Index     []int // logical index of the first
	Got, Want string
	Distance  float64
	Tolerance kernels.Tolerance
}

func (m *mismatch) Error() string {
	s := fmt.Sprintf("%d of %d elements differ, first at %v: got %s, want %s", m.Count, m.Of, m.Index, m.Got, m.Want)
	if m.Distance > 0 {
		s += fmt.Sprintf(", distance %.4g (%.4g + %.4g*|want| allowed)", m.Distance, m.Tolerance.Abs, m.Tolerance.Rel)
	}
	return s
}

// Values checks that got equals want: same kind, tensors compared by [Tensors], doubles
// within tol, other scalars exactly, and lists item by item.
func Values(got, want *tensor.Value, tol kernels.Tolerance) error {
	if got.Kind != want.Kind {
		return fmt.Errorf("got %v, want %v", got.Kind, want.Kind)
	}
	switch want.Kind {
	case tensor.KindTensor:
		return Tensors(got.Tensor, want.Tensor, tol)
	case tensor.KindDouble:
		return unequal(got.Double, want.Double, tol.Allows(got.Double, want.Double))
	case tensor.KindInt:
		return unequal(got.Int, want.Int, got.Int == want.Int)
	case tensor.KindBool:
		return unequal(got.Bool, want.Bool, got.Bool == want.Bool)
	case tensor.KindString:
		return unequal(got.Str, want.Str, got.Str == want.Str)
	case tensor.KindBoolList:
		return unequal(got.Bools, want.Bools, slices.Equal(got.Bools, want.Bools))
	case tensor.KindDoubleList:
		return unequal(got.Doubles, want.Doubles, slices.EqualFunc(got.Doubles, want.Doubles, tol.Allows))
	}
	if len(got.Items) != len(want.Items) {
		return fmt.Errorf("got %d items, want %d", len(got.Items), len(want.Items))
	}
	for i, item := range got.Items {
		if err := Values(item, want.Items[i], tol); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return nil
}

func unequal(got, want any, same bool) error {
	if same {
		return nil
	}
	return fmt.Errorf("got %v, want %v", got, want)
}

// Tensors checks that got has the type, the sizes and, within tol, the elements of want. Elements
// are compared by logical index: dim orders may differ.
func Tensors(got, want *tensor.Tensor, tol kernels.Tolerance) error {
	if got.DType != want.DType || !slices.Equal(got.Sizes, want.Sizes) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	if len(got.Data) != got.NBytes() {
		return fmt.Errorf("%d bytes for %v", len(got.Data), got)
	}
	c := comparison{dtype: want.DType, tol: tol}
	c.m.Of, c.m.Tolerance = want.Numel(), tol
	g, w, size := got.Logical(), want.Logical(), c.dtype.Size()
	for i := range c.m.Of {
		if gb, wb := g[i*size:(i+1)*size], w[i*size:(i+1)*size]; !bytes.Equal(gb, wb) && !c.near(gb, wb) {
			c.differ(gb, wb, i, want.Sizes)
		}
	}
	if c.m.Count > 0 {
		return &c.m
	}
	return nil
}

type comparison struct {
	dtype tensor.DType
	tol   kernels.Tolerance
	m     mismatch
}

// differ counts element i, and describes it if it is the first.
func (c *comparison) differ(gb, wb []byte, i int, sizes []int) {
	if c.m.Count++; c.m.Count > 1 {
		return
	}
	c.m.Index = logicalIndex(i, sizes)
	c.m.Got, c.m.Want = Format(c.dtype, gb), Format(c.dtype, wb)
	for i, x := range parts(c.dtype, gb) {
		c.m.Distance = max(c.m.Distance, math.Abs(x-parts(c.dtype, wb)[i]))
	}
}

// logicalIndex returns the index of the ith element in logical order.
func logicalIndex(i int, sizes []int) []int {
	index := make([]int, len(sizes))
	for d, n := range slices.Backward(sizes) {
		index[d], i = i%n, i/n
	}
	return index
}

// near compares floats, or the parts of complex numbers.
func (c *comparison) near(gb, wb []byte) bool {
	if kernels.Epsilon(c.dtype) == 0 {
		return false
	}
	want := parts(c.dtype, wb)
	for i, x := range parts(c.dtype, gb) {
		if !c.tol.Allows(x, want[i]) {
			return false
		}
	}
	return true
}

// parts returns the one or two numbers of an element.
func parts(d tensor.DType, b []byte) []float64 {
	var real tensor.DType
	switch d {
	case tensor.Complex32:
		real = tensor.Float16
	case tensor.Complex64:
		real = tensor.Float32
	case tensor.Complex128:
		real = tensor.Float64
	default:
		v := make([]float64, 1)
		if load := tensor.Loader[float64](d); load != nil {
			load(v, b)
		}
		return v
	}
	v := make([]float64, 2)
	tensor.Loader[float64](real)(v, b)
	return v
}

// Format formats one element of type d, b its bytes.
func Format(d tensor.DType, b []byte) string {
	if d.IsInt() || d == tensor.Bool {
		v := make([]int64, 1)
		tensor.Loader[int64](d)(v, b)
		if d == tensor.Uint64 {
			return fmt.Sprint(uint64(v[0]))
		}
		return fmt.Sprint(v[0])
	}
	v := parts(d, b)
	if len(v) == 2 {
		return fmt.Sprintf("%g%+gi", v[0], v[1])
	}
	return fmt.Sprint(v[0])
}

// Largest returns the largest finite magnitude in a tensor.
func Largest(t *tensor.Tensor) (m float64) {
	size := t.DType.Size()
	if len(t.Data) < t.NBytes() {
		return 0
	}
	for i := range t.Numel() {
		for _, v := range parts(t.DType, t.Data[i*size:(i+1)*size]) {
			if v = math.Abs(v); v > m && !math.IsInf(v, 0) {
				m = v
			}
		}
	}
	return m
}
