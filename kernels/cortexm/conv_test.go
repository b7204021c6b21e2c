package cortexm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func (l *layer) String() string {
	return fmt.Sprintf("%d×%d groups of %d→%d, size %v kernel %v stride %v pad %v+%v dilate %v offset %d", l.batch, l.groups,
		l.inGroup, l.outGroup, l.size, l.kernel, l.stride, l.pad, l.outPad, l.dilate, l.xOffset)
}

// conv is a case of one of the convolutions; geometry are its arguments behind padding.
func (l *layer) conv(op string, w *tensor.Tensor, order []uint8, geometry ...any) kerneltest.Case {
	args := append([]any{l.x, w, l.biasArg(), l.stride[:], l.pad[:]}, geometry...)
	args = append(args, l.xOffset, l.zero, l.multiplier, l.shift, l.least, l.most, tensor.New(u8, 3))
	if l.transposed {
		args = append(args, tensor.New(u8, 0))
	}
	return gives(l.String(), op, l.want(order), args...)
}

func TestConv2d(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var cases []kerneltest.Case
	for range 150 {
		l := layer{batch: 1 + r.IntN(2), groups: 1 + r.IntN(3), inGroup: 1 + r.IntN(9), outGroup: 1 + r.IntN(20)}
		l.random(r)
		cases = append(cases, l.conv("quantized_conv2d", l.w, imageOrder(r), l.dilate[:]))
	}
	kerneltest.Run(t, set, cases...)
}

// TestConv2dLarge has more products to a sum than stay exact in one go, more points
// than a tile, and sums that wrap.
func TestConv2dLarge(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	one := [2]int{1, 1}
	var cases []kerneltest.Case
	for _, l := range []layer{
		{inGroup: 200, outGroup: 5, size: [2]int{7, 6}, kernel: [2]int{3, 3}, pad: one},
		{inGroup: 1300, outGroup: 70, size: [2]int{3, 5}, kernel: one},
		{inGroup: 3, outGroup: 9, size: [2]int{20, 61}, kernel: [2]int{3, 3}, pad: one},
		{inGroup: 16, outGroup: 260, size: [2]int{1, 1}, kernel: one},
		{inGroup: 9000, outGroup: 2, size: [2]int{2, 2}, kernel: [2]int{2, 2}, pad: one},
	} {
		l.batch, l.groups, l.stride, l.dilate = 2, 1, one, one
		l.numbers(r)
		l.x, l.w = noise(r, i8, last, 2, l.inGroup, l.size[0], l.size[1]), noise(r, i8, nil, l.outGroup, l.kernel[0], l.kernel[1], l.inGroup)
		if l.inGroup == 9000 { // the largest sums: 36000 · 32640 and more
			l.xOffset, l.bias = 1<<15, nil
			fill(l.w, -128)
		}
		for d := range 2 {
			l.out[d] = l.size[d] + 2*l.pad[d] - l.kernel[d] + 1
		}
		cases = append(cases, l.conv("quantized_conv2d", l.w, last, l.dilate[:]))
	}
	kerneltest.Run(t, set, cases...)
}

func fill(t *tensor.Tensor, v int8) {
	d := tensor.Data[int8](t)
	for i := range d {
		d[i] = v
	}
}

func TestTransposeConv2d(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var cases []kerneltest.Case
	for range 150 {
		l := layer{batch: 1 + r.IntN(2), groups: 1 + r.IntN(2), inGroup: 1 + r.IntN(20), outGroup: 1 + r.IntN(9), transposed: true}
		l.random(r)
		cases = append(cases, l.conv("quantized_transpose_conv2d", l.w, imageOrder(r), l.outPad[:], l.dilate[:]))
	}
	kerneltest.Run(t, set, cases...)
}

func TestDepthwise(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var cases []kerneltest.Case
	for range 200 {
		l := layer{batch: 1 + r.IntN(2), groups: 1 + r.IntN(40), inGroup: 1, outGroup: 1}
		if r.IntN(3) == 0 {
			l.groups, l.outGroup = 1+r.IntN(4), 1+r.IntN(20)
		}
		l.random(r)
		w := kerneltest.Dense(l.w) // [out, height, width, 1]
		turned := make([]float64, len(w))
		taps := l.kernel[0] * l.kernel[1]
		for i, v := range w {
			turned[i%taps*l.channels()+i/taps] = v
		}
		depth := of(i8, []int{1, l.kernel[0], l.kernel[1], l.channels()}, turned...)
		depth.Const = l.w.Const
		cases = append(cases, l.conv("quantized_depthwise_conv2d", depth, imageOrder(r), l.dilate[:], l.outGroup))
	}
	kerneltest.Run(t, set, cases...)
}

func TestConvRefused(t *testing.T) {
	x, w, q, y := image(1, 2, 5, 5), tensor.New(i8, 3, 2, 2, 2), tensor.New(i32, 3), image(1, 3, 4, 4)
	one, none, scratch := []int{1, 1}, []int{0, 0}, tensor.New(u8, 0)
	// with changes one argument of a convolution that is right.
	with := func(name, refused string, i int, v any) kerneltest.Case {
		args := []any{x, w, q, one, none, one, 5, 0, q, q, -128, 127, scratch}
		if i >= 0 {
			args[i] = v
		}
		return refuses(name, "quantized_conv2d", refused, y, args...)
	}
	right := with("", "", -1, nil)
	right.Name, right.Outs, right.Want = "right", nil, []any{y}
	kerneltest.Run(t, set, right,
		with("input of uint8", "got uint8, want int8", 0, tensor.New(u8, 1, 2, 5, 5)),
		with("three dimensions", "an image", 0, tensor.New(i8, 2, 5, 5)),
		with("no rows", "at least 1", 0, tensor.New(i8, 1, 2, 0, 5)),
		with("empty kernel", "at least 1", 1, tensor.New(i8, 3, 0, 2, 2)),
		with("channels that do not fit", "channels that divide", 1, tensor.New(i8, 3, 2, 2, 3)),
		with("groups that do not fit", "channels that divide", 1, tensor.New(i8, 3, 2, 2, 1)),
		with("kernel larger than the input", "fits the input", 1, tensor.New(i8, 3, 6, 2, 2)),
		with("bias of another length", "each of 3 channels", 2, tensor.New(i32, 2)),
		with("bias of floats", "int32, one", 2, tensor.New(f32, 3)),
		with("stride of 0", "entries in [1", 3, none),
		with("one stride", "2 entries", 3, []int{1}),
		with("negative padding", "entries in [0", 4, []int{-1, 0}),
		with("huge padding", "entries in [0", 4, []int64{1 << 31, 0}),
		with("padding for more output than there is", "out argument", 4, []int{1 << 10, 1 << 10}),
		with("padding for much more", "argument", 4, []int{1 << 20, 1 << 20}), // on 32 bits the sizes have no product
		with("dilation of 0", "entries in [1", 5, none),
		with("dilation out of the input", "fits the input", 5, []int{1, 1 << 28}),
		with("offset out of range", "argument 6", 6, 1<<15+1),
		with("zero point out of range", "argument 7", 7, int64(1<<31)),
		with("too few multipliers", "each of 3 channels", 8, tensor.New(i32, 1)),
		with("shifts of int64", "int32, one", 9, tensor.New(tensor.Int64, 3)),
		with("shift to the left out of range", "32 for channel 1", 9, vec(i32, 0, 32, 0)),
		with("shift to the right out of range", "-32 for channel 2", 9, vec(i32, 0, 0, -32)),
		with("least code out of range", "argument 10", 10, -129),
		with("largest code out of range", "argument 11", 11, 128),
		refuses("no codes between the bounds", "quantized_conv2d", "at most -1", y, x, w, q, one, none, one, 5, 3, q, q, 0, -1, scratch),
		with("scratch of floats", "uint8 or int8", 12, tensor.New(f32, 1)),
		refuses("transposed: output padding of the stride", "quantized_transpose_conv2d", "less than the stride", image(1, 3, 7, 7),
			x, w, nil, one, none, one, one, 5, 3, q, q, -128, 127, scratch, scratch),
		refuses("transposed: nothing left", "quantized_transpose_conv2d", "fits the input", y,
			x, w, nil, one, []int{9, 9}, none, one, 5, 3, q, q, -128, 127, scratch, scratch),
		refuses("depthwise: weights of two", "quantized_depthwise_conv2d", "[1, height, width, 4]", y,
			x, tensor.New(i8, 2, 2, 2, 4), nil, one, none, one, 2, 5, 3, q, q, -128, 127, scratch),
		refuses("depthwise: multiplier of 0", "quantized_depthwise_conv2d", "argument 6", y,
			x, tensor.New(i8, 1, 2, 2, 2), nil, one, none, one, 0, 5, 3, q, q, -128, 127, scratch),
	)
}
