package cortexm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// softmaxArgs are the numbers that the exporter makes of a scale: that of an input
// with 26 fraction bits, and the least difference that counts.
func softmaxArgs(scale float64) (multiplier, shift, least int64) {
	m, e := math.Frexp(scale * (1 << 26))
	multiplier, shift = int64(math.RoundToEven(m*(1<<31))), int64(e)
	return multiplier, shift, -int64(math.Floor(31 * (1 << 26) / math.Exp2(float64(shift))))
}

// TestSoftmax compares with float64, which may round to the next code; the programs of
// testdata hold the device's own.
func TestSoftmax(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var cases []kerneltest.Case
	for range 150 {
		sizes := []int{1 + r.IntN(3), 1 + r.IntN(4), 1 + r.IntN(150)}[r.IntN(3):]
		n := sizes[len(sizes)-1]
		scale := math.Exp(r.NormFloat64()*1.5 - 3)
		multiplier, shift, least := softmaxArgs(scale)
		x := noise(r, i8, nil, sizes...)
		var want []float64
		for v := dense(x); len(v) > 0; v = v[n:] {
			want = append(want, expOf(v[:n], scale)...)
		}
		c := gives(fmt.Sprint(sizes, scale), "softmax", of(i8, sizes, want...), x, -1+len(sizes)*r.IntN(2), 5, -128, multiplier, shift, least)
		c.Tolerance = &kernels.Tolerance{Abs: 1}
		cases = append(cases, c)
	}
	kerneltest.Run(t, set, cases...)
}

// approximate is how far the device's polynomials and Newton steps are from exact.
const approximate = 5e-7

// TestExpNegative and TestOneOver compare the fixed-point functions with float64.
func TestExpNegative(t *testing.T) {
	for v := int64(0); v >= math.MinInt32; v -= 9_973 {
		got, want := float64(expNegative(int32(v)))/(1<<31), math.Exp(float64(v)/(1<<26))
		if math.Abs(got-want) > approximate {
			t.Fatalf("exp(%d): got %g, want %g", v, got, want)
		}
	}
}

func TestOneOver(t *testing.T) {
	for v := int64(0); v <= math.MaxInt32; v += 9_973 {
		got, want := float64(oneOver(int32(v)))/(1<<31), 1/(1+float64(v)/(1<<31))
		if math.Abs(got-want) > approximate {
			t.Fatalf("1/(1+%d): got %g, want %g", v, got, want)
		}
	}
}

// TestSoftmaxLong has rows whose sums leave the bits that the device has for them.
func TestSoftmaxLong(t *testing.T) {
	const rows, n = 2, 20000
	want := tensor.New(i8, rows, n)
	fill(want, -128)
	kerneltest.Run(t, set, gives("equal codes", "softmax", want, tensor.New(i8, rows, n), 1, 0, -128, 1<<30, 20, -992),
		gives("nothing counts", "softmax", want, tensor.New(i8, rows, n), 1, 0, -128, 1<<30, 20, 1))
}

func TestSoftmaxRefused(t *testing.T) {
	x := tensor.New(i8, 2, 3)
	kerneltest.Run(t, set,
		refuses("first dimension", "softmax", "the last dimension", x, x, 0, 0, -128, 1<<30, 20, -992),
		refuses("no such dimension", "softmax", "a dimension in", x, x, 2, 0, -128, 1<<30, 20, -992),
		refuses("another zero point", "softmax", "want -128", x, x, -1, 0, 0, 1<<30, 20, -992),
		refuses("negative shift", "softmax", "argument 5", x, x, -1, 0, -128, 1<<30, -1, -992),
		refuses("multiplier out of range", "softmax", "argument 4", x, x, -1, 0, -128, int64(1<<31), 20, -992),
		refuses("int16", "softmax", "got int16", x, tensor.New(i16, 2, 3), -1, 0, -128, 1<<30, 20, -992),
		gives("no rows", "softmax", tensor.New(i8, 0, 3), tensor.New(i8, 0, 3), -1, 0, -128, 1<<30, 20, -992),
		gives("no columns", "softmax", tensor.New(i8, 3, 0), tensor.New(i8, 3, 0), -1, 0, -128, 1<<30, 20, -992),
		gives("a scalar", "softmax", of(i8, nil, 127), tensor.New(i8), -1, 0, -128, 1<<30, 20, -992),
	)
}
