package pte

import (
	"github.com/etrun-go/etrun/internal/flatbuf"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// shape reads and checks the fields sizes and dim_order of a tensor's table. A missing dim order
// means contiguous.
func shape(t flatbuf.Table, sizesID, orderID int, alloc func(n int) []int) ([]int, []uint8) {
	t.Need(sizesID, "sizes")
	v := t.Vector(sizesID, "sizes", 4)
	if v.Len() > tensor.MaxRank {
		v.Failf(ErrFormat, -1, "rank %d, at most %d", v.Len(), tensor.MaxRank)
		return nil, nil
	}
	sizes := alloc(v.Len())
	for i := range sizes {
		sizes[i] = int(v.Int32(i))
		if sizes[i] < 0 {
			v.Failf(ErrFormat, i, "size %d", sizes[i])
		}
	}
	if _, ok := tensor.Product(sizes); !ok {
		v.Failf(ErrFormat, -1, "sizes %v: too many elements", sizes)
	}
	if !t.Has(orderID) {
		return sizes, tensor.ContiguousOrder(len(sizes))
	}
	return sizes, dimOrder(t, orderID, len(sizes))
}

// dimOrder reads a permutation of the dimensions.
func dimOrder(t flatbuf.Table, id, rank int) []uint8 {
	v := t.Vector(id, "dim_order", 1)
	if v.Len() != rank {
		t.Failf(ErrFormat, id, "dim_order", "%d entries, the tensor has %d sizes", v.Len(), rank)
		return nil
	}
	order := make([]uint8, rank)
	var seen [tensor.MaxRank]bool
	for i := range order {
		d := v.Uint8(i)
		switch {
		case int(d) >= rank:
			v.Failf(ErrFormat, i, "dimension %d of a tensor of rank %d", d, rank)
			return nil
		case seen[d]:
			v.Failf(ErrFormat, i, "duplicate dimension %d", d)
		}
		seen[d], order[i] = true, d
	}
	return order
}
