package cortexm

import (
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// The definitions that tests compare with: loops over logical indices, and rational
// numbers where the operators shift.

// scaled is v · multiplier · 2^(shift-31): the left shift of 32 bits first, then the
// product rounded to the next whole number, halves up, then the right shift, halves
// away from 0.
func scaled(v int32, multiplier, shift int64) int32 {
	if shift > 0 {
		v = int32(uint32(v) * uint32(1<<shift))
	}
	p := big.NewRat(int64(v), 1<<31)
	p.Mul(p, big.NewRat(multiplier, 1))
	h := floor(p.Add(p, big.NewRat(1, 2)))
	if shift >= 0 {
		return int32(h)
	}
	q := big.NewRat(h, 1<<-shift)
	half := big.NewRat(1, 2)
	if h < 0 {
		return int32(-floor(q.Neg(q).Add(q, half)))
	}
	return int32(floor(q.Add(q, half)))
}

func floor(r *big.Rat) int64 {
	q := new(big.Int)
	q.Div(r.Num(), r.Denom()) // Euclidean: rounds down, the divisor is positive
	return q.Int64()
}

// clamp is v within [least, most].
func clamp(v, least, most int64) float64 { return float64(min(max(v, least), most)) }

// dense is a tensor's elements in logical order.
func dense(t *tensor.Tensor) []int32 {
	out := make([]int32, t.Numel())
	for i, v := range kerneltest.Dense(t) {
		out[i] = int32(v)
	}
	return out
}

// noise makes a tensor of codes in the whole range of int8, or of int16.
func noise(r *rand.Rand, d tensor.DType, order []uint8, sizes ...int) *tensor.Tensor {
	n, _ := tensor.Product(sizes)
	v := make([]float64, n)
	limit := 1 << (8*d.Size() - 1)
	for i := range v {
		v[i] = float64(r.IntN(2*limit) - limit)
	}
	return kerneltest.FromDense(d, sizes, order, v)
}

// ints makes int32 numbers within [-limit, limit].
func ints(r *rand.Rand, limit, n int) *tensor.Tensor {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(r.IntN(2*limit+1) - limit)
	}
	return vec(i32, v...)
}

// imageOrder is channels last, mostly.
func imageOrder(r *rand.Rand) []uint8 {
	if r.IntN(4) == 0 {
		return kerneltest.AnyOrder(r, 4)
	}
	return last
}

// layer is a convolution as programs have them: its parameters, and what they compute.
type layer struct {
	batch, groups, inGroup, outGroup int
	size, kernel, stride, pad        [2]int
	dilate, outPad                   [2]int
	transposed                       bool

	out                     [2]int
	xOffset, zero           int64
	least, most             int64
	bias, multiplier, shift *tensor.Tensor
	x, w                    *tensor.Tensor // w is [out, height, width, in / groups]
}

func (l *layer) channels() int { return l.groups * l.outGroup }

// random chooses parameters of every kind.
func (l *layer) random(r *rand.Rand) {
	for d := range 2 {
		for l.out[d] = 0; l.out[d] < 1; {
			l.size[d], l.kernel[d] = 1+r.IntN(9), 1+r.IntN(4)
			l.stride[d], l.dilate[d], l.pad[d], l.outPad[d] = 1+r.IntN(3), 1+r.IntN(2), r.IntN(4), 0
			reach := l.dilate[d]*(l.kernel[d]-1) + 1
			l.out[d] = (l.size[d] + 2*l.pad[d] - reach + l.stride[d]) / l.stride[d]
			if l.size[d]+2*l.pad[d] < reach {
				l.out[d] = 0
			}
			if l.transposed {
				l.outPad[d] = r.IntN(max(l.stride[d], l.dilate[d]))
				l.out[d] = (l.size[d]-1)*l.stride[d] - 2*l.pad[d] + reach + l.outPad[d]
			}
		}
	}
	l.numbers(r)
	l.x = noise(r, i8, imageOrder(r), l.batch, l.groups*l.inGroup, l.size[0], l.size[1])
	l.w = noise(r, i8, nil, l.channels(), l.kernel[0], l.kernel[1], l.inGroup)
	l.w.Const = r.IntN(2) == 0
}

// numbers chooses offsets, scales and bounds.
func (l *layer) numbers(r *rand.Rand) {
	l.xOffset, l.zero, l.least, l.most = r.Int64N(256)-127, r.Int64N(256)-128, -128, 127
	switch r.IntN(4) {
	case 0:
		l.least, l.most = r.Int64N(100)-100, r.Int64N(100)
	case 1:
		l.xOffset = r.Int64N(1<<16) - 1<<15
	}
	l.bias = ints(r, 20000, l.channels())
	m, s := make([]float64, l.channels()), make([]float64, l.channels())
	for i := range m {
		m[i], s[i] = float64(1<<30+r.IntN(1<<30)), float64(r.IntN(8)-11)
		if r.IntN(20) == 0 {
			m[i], s[i] = float64(int32(r.Uint32())), float64(r.IntN(63)-31)
		}
	}
	l.multiplier, l.shift = vec(i32, m...), vec(i32, s...)
	for _, t := range []*tensor.Tensor{l.bias, l.multiplier, l.shift} {
		t.Const = r.IntN(2) == 0
	}
	if r.IntN(4) == 0 {
		l.bias = nil
	}
}

// sums are the sums of products of each output element, in logical order.
func (l *layer) sums() []int32 {
	x, w := dense(l.x), dense(l.w)
	sums := make([]int32, l.batch*l.channels()*l.out[0]*l.out[1])
	at := func(n, c, h, w, channels int, size [2]int) int { return ((n*channels+c)*size[0]+h)*size[1] + w }
	for n := range l.batch {
		for o := range l.channels() {
			for i := range l.inGroup {
				l.pairs(func(in, out, tap [2]int) {
					c := o/l.outGroup*l.inGroup + i
					a := x[at(n, c, in[0], in[1], l.groups*l.inGroup, l.size)] + int32(l.xOffset)
					b := w[((o*l.kernel[0]+tap[0])*l.kernel[1]+tap[1])*l.inGroup+i]
					sums[at(n, o, out[0], out[1], l.channels(), l.out)] += a * b
				})
			}
		}
	}
	return sums
}

// pairs calls f with each point of the input and of the output that a tap connects. The
// points of a transposed convolution are spread, those of another are gathered.
func (l *layer) pairs(f func(in, out, tap [2]int)) {
	from, to := l.out, l.size
	if l.transposed {
		from, to = l.size, l.out
	}
	for y := range from[0] {
		for x := range from[1] {
			for ky := range l.kernel[0] {
				for kx := range l.kernel[1] {
					a := [2]int{y, x}
					b := [2]int{y*l.stride[0] + ky*l.dilate[0] - l.pad[0], x*l.stride[1] + kx*l.dilate[1] - l.pad[1]}
					if b[0] < 0 || b[1] < 0 || b[0] >= to[0] || b[1] >= to[1] {
						continue
					}
					if l.transposed {
						f(a, b, [2]int{ky, kx})
					} else {
						f(b, a, [2]int{ky, kx})
					}
				}
			}
		}
	}
}

// want is the output, of any dim order.
func (l *layer) want(order []uint8) *tensor.Tensor {
	v := make([]float64, 0, l.batch*l.channels()*l.out[0]*l.out[1])
	m, s := dense(l.multiplier), dense(l.shift)
	for i, sum := range l.sums() {
		o := i / (l.out[0] * l.out[1]) % l.channels()
		if l.bias != nil {
			sum += dense(l.bias)[o]
		}
		q := int64(scaled(sum, int64(m[o]), int64(s[o])) + int32(l.zero))
		v = append(v, clamp(q, l.least, l.most))
	}
	return kerneltest.FromDense(i8, []int{l.batch, l.channels(), l.out[0], l.out[1]}, order, v)
}

// biasArg is the bias as an argument.
func (l *layer) biasArg() any {
	if l.bias == nil {
		return nil
	}
	return l.bias
}

// expOf is a softmax of codes of the given scale in float64, in codes.
func expOf(x []int32, scale float64) []float64 {
	sum, most := 0.0, int32(math.MinInt32)
	for _, v := range x {
		most = max(most, v)
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = math.Exp(float64(v-most) * scale)
		sum += out[i]
	}
	for i := range out {
		out[i] = min(max(math.Round(out[i]/sum*256)-128, -128), 127)
	}
	return out
}
