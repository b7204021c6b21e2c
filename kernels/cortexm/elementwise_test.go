package cortexm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestRequantize compares every kind of shift and sign with rational arithmetic.
func TestRequantize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	extremes := []int32{0, 1, -1, math.MaxInt32, math.MinInt32, math.MinInt32 + 1, 1 << 30, -1 << 30, 3, -3, 255, 1 << 20}
	any := func() int32 {
		if r.IntN(3) == 0 {
			return extremes[r.IntN(len(extremes))]
		}
		return int32(r.Uint32()) >> r.IntN(32)
	}
	for range 200000 {
		v, m, s := any(), any(), int32(r.IntN(2*maxShift+1)-maxShift)
		if got, want := requantize(v, m, s), scaled(v, int64(m), int64(s)); got != want {
			t.Fatalf("%d by %d, shift %d: got %d, want %d", v, m, s, got, want)
		}
	}
}

// operands are two tensors that an addition takes, and how to see them as the output's.
func operands(r *rand.Rand) (x, y *tensor.Tensor, sizes []int, xs, ys []int32) {
	sizes = []int{1 + r.IntN(3), 1 + r.IntN(20), 1 + r.IntN(6), 1 + r.IntN(6)}
	channels := []int{1, sizes[1], 1, 1}
	switch kind := r.IntN(4); kind {
	case 0, 1:
		x, y = noise(r, i8, imageOrder(r), sizes...), noise(r, i8, imageOrder(r), channels...)
		xs, ys = dense(x), spread(dense(y), sizes)
		if kind == 1 {
			return y, x, sizes, ys, xs
		}
		return x, y, sizes, xs, ys
	case 2:
		sizes = sizes[:1+r.IntN(3)]
		x, y = noise(r, i8, nil, sizes...), noise(r, i8, nil, sizes...)
	default:
		x, y = noise(r, i8, imageOrder(r), sizes...), noise(r, i8, imageOrder(r), sizes...)
	}
	return x, y, sizes, dense(x), dense(y)
}

// spread repeats one element for each channel over an image.
func spread(v []int32, sizes []int) []int32 {
	out := make([]int32, sizes[0]*sizes[1]*sizes[2]*sizes[3])
	for i := range out {
		out[i] = v[i/(sizes[2]*sizes[3])%sizes[1]]
	}
	return out
}

func anyOrder(r *rand.Rand, sizes []int) []uint8 { return kerneltest.AnyOrder(r, len(sizes)) }

func TestAdd(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var cases []kerneltest.Case
	for range 120 {
		x, y, sizes, xs, ys := operands(r)
		zx, zy, zero := r.Int64N(400)-200, r.Int64N(256)-128, r.Int64N(256)-128
		mx, sx, my, sy := 1<<30+r.Int64N(1<<30), -r.Int64N(9), 1<<30+r.Int64N(1<<30), -r.Int64N(9)
		m, s, least, most := 1<<30+r.Int64N(1<<30), -14-r.Int64N(8), -r.Int64N(129), r.Int64N(128)
		want := make([]float64, len(xs))
		for i := range want {
			a, b := scaled((xs[i]-int32(zx))<<20, mx, sx), scaled((ys[i]-int32(zy))<<20, my, sy)
			want[i] = clamp(int64(scaled(a+b, m, s))+zero, least, most)
		}
		cases = append(cases, gives(fmt.Sprint(x, y), "quantized_add", kerneltest.FromDense(i8, sizes, anyOrder(r, sizes), want),
			x, zx, mx, sx, y, zy, my, sy, zero, m, s, least, most))
	}
	kerneltest.Run(t, set, cases...)
}

func TestMul(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var cases []kerneltest.Case
	for range 120 {
		x, y, sizes, xs, ys := operands(r)
		zx, zy, zero := r.Int64N(600)-300, r.Int64N(256)-128, r.Int64N(256)-128
		m, s := 1<<30+r.Int64N(1<<30), -3-r.Int64N(9)
		want := make([]float64, len(xs))
		for i := range want {
			want[i] = clamp(int64(scaled((xs[i]-int32(zx))*(ys[i]-int32(zy)), m, s))+zero, -128, 127)
		}
		cases = append(cases, gives(fmt.Sprint(x, y), "quantized_mul", kerneltest.FromDense(i8, sizes, anyOrder(r, sizes), want),
			x, zx, y, zy, zero, m, s))
	}
	kerneltest.Run(t, set, cases...)
}

func TestDiv(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var cases []kerneltest.Case
	for i := range 60 {
		d, limit := i8, 128.0
		if i%2 == 0 {
			d, limit = i16, 32768
		}
		sizes := []int{1 + r.IntN(4), 1 + r.IntN(9), 1 + r.IntN(4)}
		x, y := noise(r, d, nil, sizes...), noise(r, d, anyOrder(r, sizes), sizes...)
		zx, zy, zero := int32(r.IntN(256)-128), int32(r.IntN(256)-128), int32(r.IntN(256)-128)
		scale := math.Exp(r.NormFloat64()*4) * float64(1-2*r.IntN(2))
		xs, ys := dense(x), dense(y)
		want := make([]float64, len(xs))
		for i := range want {
			q := float32(0)
			if ys[i] != zy {
				q = float32(xs[i]-zx) / float32(ys[i]-zy)
			}
			q *= float32(scale)
			v := math.Trunc(float64(q) + math.Copysign(0.5, float64(q))) // halves away from 0: q has 24 bits
			want[i] = min(max(v+float64(zero), -limit), limit-1)
		}
		cases = append(cases, gives(fmt.Sprint(d, sizes, scale), "quantized_div", kerneltest.FromDense(d, sizes, anyOrder(r, sizes), want),
			x, int(zx), y, int(zy), int(zero), scale))
	}
	kerneltest.Run(t, set, append(cases,
		gives("halves away from 0", "quantized_div", vec(i8, 1, -1, 2, -2, 3), vec(i8, 1, -1, 3, -3, 5), 0, vec(i8, 2, 2, 2, 2, 2), 0, 0, 1.0),
		gives("by 0", "quantized_div", vec(i8, 7, 127, -128), vec(i8, 5, 127, -128), 5, vec(i8, -3, -2, -2), -3, 7, 1e38))...)
}

func TestMinimumMaximum(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var cases []kerneltest.Case
	for range 120 {
		sizes := []int{1 + r.IntN(3), 1 + r.IntN(5), 1 + r.IntN(4), 1 + r.IntN(6)}[r.IntN(4):]
		xSizes, ySizes := append([]int{}, sizes...), append([]int{}, sizes...)[r.IntN(len(sizes)+1):]
		for d := range xSizes {
			if r.IntN(4) == 0 {
				xSizes[d] = 1
			}
		}
		x, y := noise(r, i8, anyOrder(r, xSizes), xSizes...), noise(r, i8, anyOrder(r, ySizes), ySizes...)
		if r.IntN(2) == 0 {
			x, y = y, x
		}
		outSizes, xs, ys := wide(x, y)
		least, most := make([]float64, len(xs)), make([]float64, len(xs))
		for i := range xs {
			least[i], most[i] = float64(min(xs[i], ys[i])), float64(max(xs[i], ys[i]))
		}
		cases = append(cases,
			gives(fmt.Sprint("min", x, y), "minimum", kerneltest.FromDense(i8, outSizes, anyOrder(r, outSizes), least), x, y),
			gives(fmt.Sprint("max", x, y), "maximum", kerneltest.FromDense(i8, outSizes, anyOrder(r, outSizes), most), x, y))
	}
	kerneltest.Run(t, set, cases...)
}

// wide broadcasts two tensors: the sizes, and the elements of both.
func wide(x, y *tensor.Tensor) (sizes []int, xs, ys []int32) {
	sizes = make([]int, max(x.Rank(), y.Rank()))
	for d := range sizes {
		sizes[d] = max(sizeFromEnd(x, len(sizes)-d), sizeFromEnd(y, len(sizes)-d))
	}
	n, _ := tensor.Product(sizes)
	a, b := dense(x), dense(y)
	for i := range n {
		xs, ys = append(xs, a[placeIn(x, sizes, i)]), append(ys, b[placeIn(y, sizes, i)])
	}
	return sizes, xs, ys
}

func sizeFromEnd(t *tensor.Tensor, back int) int {
	if back > t.Rank() {
		return 1
	}
	return t.Sizes[t.Rank()-back]
}

// placeIn is where t has element i of an array that it broadcasts to.
func placeIn(t *tensor.Tensor, sizes []int, i int) int {
	at, stride := 0, 1
	for back := 1; back <= len(sizes); back++ {
		index := i % sizes[len(sizes)-back]
		i /= sizes[len(sizes)-back]
		n := sizeFromEnd(t, back)
		at += index % n * stride
		stride *= n
	}
	return at
}

func TestActivation(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	x, table := noise(r, i8, last, 2, 3, 40, 41), noise(r, i8, nil, 256)
	want := make([]float64, x.Numel())
	for i, v := range dense(x) {
		want[i] = float64(dense(table)[v+128])
	}
	kerneltest.Run(t, set, gives("table", "quantized_activation", kerneltest.FromDense(i8, x.Sizes, nil, want), x, table),
		refuses("short table", "quantized_activation", "256 elements", vec(i8, 1), vec(i8, 1), tensor.New(i8, 255)))
}

func TestElementwiseRefused(t *testing.T) {
	x, y := tensor.New(i8, 2, 3), tensor.New(i8, 2, 3)
	kerneltest.Run(t, set,
		refuses("add: one row", "quantized_add", "the sizes of the other", y, x, 0, 1, 0, tensor.New(i8, 1, 3), 0, 1, 0, 0, 1, 0, -128, 127),
		refuses("add: one image for two", "quantized_add", "the sizes of the other", tensor.New(i8, 2, 3, 4, 4),
			tensor.New(i8, 2, 3, 4, 4), 0, 1, 0, tensor.New(i8, 1, 3, 4, 4), 0, 1, 0, 0, 1, 0, -128, 127),
		refuses("add: shift out of range", "quantized_add", "argument 7: got 32", y, x, 0, 1, 0, x, 0, 1, 32, 0, 1, 0, -128, 127),
		refuses("add: multiplier out of range", "quantized_add", "argument 9", y, x, 0, 1, 0, x, 0, 1, 0, 0, int64(1<<31), 0, -128, 127),
		refuses("add: int16", "quantized_add", "got int16", y, tensor.New(i16, 2, 3), 0, 1, 0, x, 0, 1, 0, 0, 1, 0, -128, 127),
		refuses("mul: zero point out of range", "quantized_mul", "argument 3", y, x, 0, x, int64(1<<31), 0, 1, 0),
		refuses("mul: other channels", "quantized_mul", "the sizes of the other", image(1, 4, 2, 2),
			image(1, 4, 2, 2), 0, image(1, 3, 1, 1), 0, 0, 1, 0),
		refuses("div: other sizes", "quantized_div", "the sizes of the dividend", y, x, 0, tensor.New(i8, 3), 0, 0, 1.0),
		refuses("div: other types", "quantized_div", "got int8, want int16", y, tensor.New(i16, 2, 3), 0, x, 0, 0, 1.0),
		refuses("div: no number", "quantized_div", "a finite float32", y, x, 0, x, 0, 0, math.NaN()),
		refuses("div: beyond float32", "quantized_div", "a finite float32", y, x, 0, x, 0, 0, 1e300),
		refuses("min: sizes that do not broadcast", "minimum", "broadcast", y, x, tensor.New(i8, 2)),
		refuses("max: uint8", "maximum", "got uint8", y, x, tensor.New(u8, 2, 3)),
	)
}
