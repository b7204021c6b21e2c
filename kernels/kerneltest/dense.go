package kerneltest

import (
	"math/rand/v2"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Dense returns a real tensor's elements in logical order as float64, for reference implementations
// in tests.
func Dense(t *tensor.Tensor) []float64 {
	stored := make([]float64, t.Numel())
	tensor.Loader[float64](t.DType)(stored, t.Data)
	dense := make([]float64, len(stored))
	index := make([]int, t.Rank())
	for i := range dense {
		dense[i] = stored[place(t, index)]
		advance(index, t.Sizes)
	}
	return dense
}

// FromDense returns a tensor of type d with elements given in logical order. order is its dim
// order, nil for contiguous.
func FromDense(d tensor.DType, sizes []int, order []uint8, dense []float64) *tensor.Tensor {
	t := tensor.Make(d, sizes, order, tensor.Static)
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	stored := make([]float64, len(dense))
	index := make([]int, t.Rank())
	for _, v := range dense {
		stored[place(t, index)] = v
		advance(index, sizes)
	}
	tensor.Storer[float64](d)(t.Data, stored)
	return t
}

// Noise returns a tensor of random elements between -4 and 4: integers for integer types,
// non-negative for unsigned types.
func Noise(r *rand.Rand, d tensor.DType, sizes []int, order []uint8) *tensor.Tensor {
	n, _ := tensor.Product(sizes)
	dense := make([]float64, n)
	for i := range dense {
		switch {
		case d == tensor.Uint8 || d >= tensor.Uint16 && d <= tensor.Uint64:
			dense[i] = float64(r.IntN(5))
		case d.IsFloat():
			dense[i] = r.Float64()*8 - 4
		default:
			dense[i] = float64(r.IntN(9) - 4)
		}
	}
	return FromDense(d, sizes, order, dense)
}

// AnyOrder returns a random dim order: contiguous, channels last or any permutation.
func AnyOrder(r *rand.Rand, rank int) []uint8 {
	order := tensor.ContiguousOrder(rank)
	switch r.IntN(3) {
	case 1:
		if rank >= 3 {
			order = append(append(order[:1:1], order[2:]...), 1)
		}
	case 2:
		r.Shuffle(rank, func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return order
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
