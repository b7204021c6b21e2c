package cortexm

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
)

// weights are the weights of a product, [outChannels, k], in its layout: per group [k, channels of
// the group]. Those of a constant tensor are converted once.
type weights struct {
	in       layout
	offset   int32 // added to each
	perImage bool  // the tensor contains weights for each image

	floats       []float32
	sums         []int32 // sums of each output channel's weights
	cachedFloats operand.Cached[float32]
	cachedSums   operand.Cached[int32]
}

// load converts the weights.
func (w *weights) load(c *kernels.Ctx, groups, outChannels, k int) {
	t := w.in.t
	w.floats, w.sums = w.cachedFloats.Get(t), w.cachedSums.Get(t)
	if w.floats != nil && w.sums != nil {
		return
	}
	src := load[int8](c, &w.in)
	w.floats, w.sums = w.cachedFloats.New(c, t, len(src)), w.cachedSums.New(c, t, len(src)/k)
	for o := range w.sums {
		w.sums[o] = sum(src[o*k:][:k]) + int32(k)*w.offset
	}
	perGroup := outChannels / groups
	turned := kernels.Scratch[int8](c, perGroup*k)
	for at := 0; at < len(src); at += len(turned) {
		operand.Transpose(c, turned, src[at:][:len(turned)], perGroup, k)
		floats(w.floats[at:][:len(turned)], turned, w.offset)
	}
}

func sum(x []int8) (s int32) {
	for _, v := range x {
		s += int32(v)
	}
	return s
}
