package cortexm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// rows are the codes of products of rows x with rows w, in int64.
func rows(x, w []int32, k int, xOffset, wOffset int64, start []int32, code func(v int32) float64) []float64 {
	var out []float64
	for i := 0; i < len(x); i += k {
		for j := 0; j < len(w); j += k {
			sum := int64(0)
			for p := range k {
				sum += (int64(x[i+p]) + xOffset) * (int64(w[j+p]) + wOffset)
			}
			if start != nil {
				sum += int64(start[j/k])
			}
			out = append(out, code(int32(sum)))
		}
	}
	return out
}

func TestLinear(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var cases []kerneltest.Case
	for i := range 120 {
		sizes := []int{1 + r.IntN(5), 1 + r.IntN(4), 1 + r.IntN(70)}[r.IntN(3):]
		k, n := sizes[len(sizes)-1], 1+r.IntN(40)
		if i%10 == 0 {
			k, n = 700, 150 // several blocks, and channels for each thread
			sizes = []int{1, k}
		}
		x, w := noise(r, i8, nil, sizes...), noise(r, i8, nil, n, k)
		w.Const = r.IntN(2) == 0
		xOffset, wOffset, zero := r.Int64N(256)-127, int64(0), r.Int64N(256)-128
		if i%3 == 0 {
			wOffset = r.Int64N(257) - 128
		}
		m, s, least, most := 1<<30+r.Int64N(1<<30), r.Int64N(5)-11, int64(-128), int64(127)
		if i%4 == 0 {
			least, most = r.Int64N(100)-100, r.Int64N(100)
		}
		code := func(v int32) float64 { return clamp(int64(scaled(v, m, s))+zero, least, most) }
		outSizes := append(append([]int{}, sizes[:len(sizes)-1]...), n)
		add := func(name string, want []float64, bias, sum any) {
			cases = append(cases, gives(fmt.Sprint(name, sizes, n), "quantized_linear", of(i8, outSizes, want...),
				x, w, bias, sum, xOffset, wOffset, zero, []int64{m}, []int64{s}, most, least))
		}
		bias := ints(r, 20000, n)
		sum := ints(r, 20000, n)
		sum = of(i32, []int{1, n}, kerneltest.Dense(sum)...)
		xs, ws := dense(x), dense(w)
		plain, folded := rows(xs, ws, k, xOffset, wOffset, dense(bias), code), rows(xs, ws, k, 0, wOffset, dense(sum), code)
		add("bias", plain, bias, nil)
		add("none", rows(xs, ws, k, xOffset, wOffset, nil, code), nil, nil)
		add("kernel sums", folded, nil, sum)
		add("kernel sums win over a bias", folded, bias, sum)
	}
	kerneltest.Run(t, set, cases...)
}

// TestLinearWraps has sums beyond int32: they wrap, as the device's do.
func TestLinearWraps(t *testing.T) {
	const k = 70000
	x, w := tensor.New(i8, 1, k), tensor.New(i8, 1, k)
	fill(x, -128)
	fill(w, -128)
	sum := int64(k) * (-128 - 127) * -128 // 2284800000, beyond 2^31
	kerneltest.Run(t, set, gives("wraps", "quantized_linear", of(i8, []int{1, 1}, clamp(int64(scaled(int32(sum), 1<<30, -20)), -128, 127)),
		x, w, nil, nil, -127, 0, 0, []int{1 << 30}, []int{-20}, 127, -128))
}

func TestBatchMatmul(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var cases []kerneltest.Case
	for range 60 {
		b, m, n, k := 1+r.IntN(4), 1+r.IntN(9), 1+r.IntN(40), 1+r.IntN(600)
		x, y := noise(r, i8, kerneltest.AnyOrder(r, 3), b, m, k), noise(r, i8, nil, b, n, k)
		y.Const = r.IntN(2) == 0
		xOffset, yOffset, zero := r.Int64N(256)-127, r.Int64N(256)-127, r.Int64N(256)-128
		multiplier, shift := 1<<30+r.Int64N(1<<30), r.Int64N(5)-13
		var want []float64
		for i := range b {
			want = append(want, rows(dense(x)[i*m*k:][:m*k], dense(y)[i*n*k:][:n*k], k, xOffset, yOffset, nil,
				func(v int32) float64 { return clamp(int64(scaled(v, multiplier, shift))+zero, -128, 127) })...)
		}
		cases = append(cases, gives(fmt.Sprint(b, m, n, k), "quantized_batch_matmul", of(i8, []int{b, m, n}, want...),
			x, xOffset, y, yOffset, zero, multiplier, shift, tensor.New(u8, 4*n)))
	}
	kerneltest.Run(t, set, cases...)
}

func TestLinearRefused(t *testing.T) {
	x, w, y := tensor.New(i8, 2, 6), tensor.New(i8, 4, 6), tensor.New(i8, 2, 4)
	one, shift, scratch := []int64{1 << 30}, []int64{-6}, tensor.New(u8, 0)
	linear := func(name, refused string, args ...any) kerneltest.Case {
		return refuses(name, "quantized_linear", refused, y, args...)
	}
	l, rhs, product := tensor.New(i8, 2, 3, 6), tensor.New(i8, 2, 4, 6), tensor.New(i8, 2, 3, 4)
	matmul := func(name, refused string, args ...any) kerneltest.Case {
		return refuses(name, "quantized_batch_matmul", refused, product, append(args, 0, 1<<30, -6, scratch)...)
	}
	kerneltest.Run(t, set,
		linear("a scalar", "rows of 6", tensor.New(i8), w, nil, nil, 0, 0, 0, one, shift, 127, -128),
		linear("other rows", "rows of 6", tensor.New(i8, 2, 5), w, nil, nil, 0, 0, 0, one, shift, 127, -128),
		linear("weights of rank 3", "[out, in]", x, tensor.New(i8, 4, 6, 1), nil, nil, 0, 0, 0, one, shift, 127, -128),
		linear("no inputs", "at least 1", tensor.New(i8, 2, 0), tensor.New(i8, 4, 0), nil, nil, 0, 0, 0, one, shift, 127, -128),
		linear("bias of another length", "each of 4 channels", x, w, tensor.New(i32, 3), nil, 0, 0, 0, one, shift, 127, -128),
		linear("kernel sums of another length", "argument 3", x, w, nil, tensor.New(i32, 1, 3), 0, 0, 0, one, shift, 127, -128),
		linear("scales of channels", "one entry", x, w, nil, nil, 0, 0, 0, []int64{1, 2, 3, 4}, shift, 127, -128),
		linear("no shift", "one entry", x, w, nil, nil, 0, 0, 0, one, []int64{}, 127, -128),
		linear("shift out of range", "argument 8", x, w, nil, nil, 0, 0, 0, one, []int64{-32}, 127, -128),
		linear("multiplier out of range", "argument 7", x, w, nil, nil, 0, 0, 0, []int64{1 << 31}, shift, 127, -128),
		linear("bounds in the wrong order", "at most -128", x, w, nil, nil, 0, 0, 0, one, shift, -128, 127),
		linear("filter offset out of range", "argument 5", x, w, nil, nil, 0, 129, 0, one, shift, 127, -128),
		matmul("two dimensions", "[B, M, K]", x, 0, rhs, 0),
		matmul("another batch", "[2, N, 6]", l, 0, tensor.New(i8, 1, 4, 6), 0),
		matmul("not transposed", "[2, N, 6]", l, 0, tensor.New(i8, 2, 6, 4), 0),
		matmul("offset out of range", "argument 3", l, 0, rhs, int64(1<<40)),
		gives("no rows", "quantized_linear", tensor.New(i8, 0, 4), tensor.New(i8, 0, 6), w, nil, nil, 0, 0, 0, one, shift, 127, -128),
		gives("no columns", "quantized_batch_matmul", tensor.New(i8, 2, 3, 0), l, 0, tensor.New(i8, 2, 0, 6), 0, 0, 1<<30, -6, scratch),
	)
}
