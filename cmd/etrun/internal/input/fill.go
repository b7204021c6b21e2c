package input

import (
	"context"
	"math/rand/v2"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// fillChunk is the number of elements between two checks of the context.
const fillChunk = 1 << 20

// fill makes a tensor of zeros, ones or random elements. Random floats are uniform in
// [0, 1); bytes have any value; wider integers and booleans are 0 or 1, so that they are
// valid indices, unless Integers says otherwise. Equal seed and index give equal elements on every machine.
func (r *Resolver) fill(ctx context.Context, index int, how string, slot etrun.ValueMeta) (*tensor.Tensor, error) {
	t, err := r.allocate(slot)
	if err != nil || how == "zeros" {
		return t, err
	}
	next := func() float64 { return 1 }
	if how == "rand" {
		least, most := 0, 1
		if r.Integers != nil {
			least, most = r.Integers(index)
		}
		next = generator(slot.DType, rand.New(rand.NewPCG(r.Seed, uint64(index))), least, most)
	}
	part, parts := slot.DType, 1
	if real, ok := realParts[slot.DType]; ok {
		part, parts = real, 2
	}
	if tensor.Storer[float64](part) == nil {
		return nil, mismatch("%s for elements of %v; use zeros or a file", how, slot.DType)
	}
	for i, rest := 0, t.Data; len(rest) > 0; i, rest = i+1, rest[part.Size()*parts:] {
		if i%fillChunk == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		tensor.Put(rest, part, next())
	}
	return t, nil
}

// realParts are the element types of the halves of complex numbers. Imaginary parts stay
// zero.
var realParts = map[tensor.DType]tensor.DType{
	tensor.Complex32: tensor.Float16, tensor.Complex64: tensor.Float32, tensor.Complex128: tensor.Float64,
}

func generator(d tensor.DType, rng *rand.Rand, least, most int) func() float64 {
	switch {
	case d == tensor.Uint8:
		return func() float64 { return float64(rng.IntN(256)) }
	case d == tensor.Int8:
		return func() float64 { return float64(rng.IntN(256) - 128) }
	case d.IsInt() || d == tensor.Bool:
		return func() float64 { return float64(least + rng.IntN(most-least+1)) }
	}
	return rng.Float64
}
