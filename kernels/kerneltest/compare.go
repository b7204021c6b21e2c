package kerneltest

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Mismatch describes how a tensor differs from the one wanted.
type Mismatch struct {
	Count, Of int   // number of differing elements, and of all elements
	Index     []int // logical index of the first
	Got, Want string
	Distance  float64
	Tolerance kernels.Tolerance
}

func (m *Mismatch) Error() string {
	s := fmt.Sprintf("%d of %d elements differ, first at %v: got %s, want %s", m.Count, m.Of, m.Index, m.Got, m.Want)
	if m.Distance > 0 {
		s += fmt.Sprintf(", distance %.4g (%.4g + %.4g*|want| allowed)", m.Distance, m.Tolerance.Abs, m.Tolerance.Rel)
	}
	return s
}

// CompareValues checks that got equals want: same kind, tensors compared by [Compare], doubles
// within tol, other scalars exactly, and lists item by item.
func CompareValues(got, want *tensor.Value, tol kernels.Tolerance) error {
	if got.Kind != want.Kind {
		return fmt.Errorf("got %v, want %v", got.Kind, want.Kind)
	}
	switch want.Kind {
	case tensor.KindTensor:
		return Compare(got.Tensor, want.Tensor, tol)
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
		if err := CompareValues(item, want.Items[i], tol); err != nil {
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

// Compare checks that got has the type, the sizes and, within tol, the elements of want. Elements
// are compared by logical index: dim orders may differ.
func Compare(got, want *tensor.Tensor, tol kernels.Tolerance) error {
	if got.DType != want.DType || !slices.Equal(got.Sizes, want.Sizes) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	if len(got.Data) != got.NBytes() {
		return fmt.Errorf("%d bytes for %v", len(got.Data), got)
	}
	c := comparison{got: got, want: want, tol: tol}
	c.m.Of, c.m.Tolerance = want.Numel(), tol
	index := make([]int, want.Rank())
	for range c.m.Of {
		c.element(index)
		advance(index, want.Sizes)
	}
	if c.m.Count > 0 {
		return &c.m
	}
	return nil
}

type comparison struct {
	got, want *tensor.Tensor
	tol       kernels.Tolerance
	m         Mismatch
}

func (c *comparison) element(index []int) {
	size := c.want.DType.Size()
	g, w := place(c.got, index)*size, place(c.want, index)*size
	gb, wb := c.got.Data[g:g+size], c.want.Data[w:w+size]
	if bytes.Equal(gb, wb) || c.near(gb, wb) {
		return
	}
	if c.m.Count++; c.m.Count == 1 {
		c.m.Index = slices.Clone(index)
		c.m.Got, c.m.Want = show(c.want.DType, gb), show(c.want.DType, wb)
		for i, x := range parts(c.want.DType, gb) {
			c.m.Distance = max(c.m.Distance, math.Abs(x-parts(c.want.DType, wb)[i]))
		}
	}
}

// near compares floats, or the parts of complex numbers.
func (c *comparison) near(gb, wb []byte) bool {
	if kernels.Epsilon(c.want.DType) == 0 {
		return false
	}
	want := parts(c.want.DType, wb)
	for i, x := range parts(c.want.DType, gb) {
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

// show formats one element.
func show(d tensor.DType, b []byte) string {
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

// place returns the memory offset of a logical index, in elements.
func place(t *tensor.Tensor, index []int) (n int) {
	for d, i := range index {
		n += i * t.Strides[d]
	}
	return n
}

// advance increments a logical index, last dimension fastest.
func advance(index, sizes []int) {
	for d := len(index) - 1; d >= 0; d-- {
		if index[d]++; index[d] < sizes[d] {
			return
		}
		index[d] = 0
	}
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
