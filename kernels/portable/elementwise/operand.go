package elementwise

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// layout is the relation of an operand's elements to the result's memory order.
type layout uint8

const (
	absent   layout = iota
	dense           // element i of the operand belongs to element i of the result
	single          // one element for all
	gathered        // a walk over dims
	rowwise         // an element for each row of the result, or for several; a walk over dims for the rows
)

// operand is one input of a loop.
type operand struct {
	data   []byte
	size   int // bytes of an element
	layout layout

	// A strided operand's dimensions in the result's memory order, innermost first, merged where possible; strides
	// are in elements, 0 for broadcast dimensions.
	run     int // length of a row, if rowwise
	rank    int
	sizes   [tensor.MaxRank]int
	strides [tensor.MaxRank]int
}

// set describes t against out, whose sizes t broadcasts to. Of t it reads sizes,
// strides and bytes, so t may also be a part of a tensor.
func (o *operand) set(t, out *tensor.Tensor) {
	o.data, o.size = t.Data, t.DType.Size()
	if slices.Equal(t.Sizes, out.Sizes) && slices.Equal(t.Strides, out.Strides) {
		o.layout = dense
		return
	}
	o.rank = 0
	missing := len(out.Sizes) - len(t.Sizes)
	for i := len(out.DimOrder) - 1; i >= 0; i-- {
		d := int(out.DimOrder[i])
		n, stride := out.Sizes[d], 0
		if n == 1 {
			continue
		}
		if d >= missing && t.Sizes[d-missing] != 1 {
			stride = t.Strides[d-missing]
		}
		o.push(n, stride)
	}
	switch {
	case o.rank == 0 || o.rank == 1 && o.strides[0] == 0:
		o.layout = single
	case o.rank == 1 && o.strides[0] == 1:
		o.layout = dense
	default:
		o.layout = gathered
	}
}

// byRows makes an operand rowwise whose innermost dimension is broadcast.
func (o *operand) byRows() {
	if o.layout != gathered || o.strides[0] != 0 {
		return
	}
	o.layout, o.run = rowwise, o.sizes[0]
	o.rank--
	copy(o.sizes[:o.rank], o.sizes[1:])
	copy(o.strides[:o.rank], o.strides[1:])
}

// push adds the next outer dimension, or merges it into the last one if the two are contiguous.
func (o *operand) push(n, stride int) {
	if r := o.rank; r > 0 && stride == o.strides[r-1]*o.sizes[r-1] {
		o.sizes[r-1] *= n
		return
	}
	o.sizes[o.rank], o.strides[o.rank] = n, stride
	o.rank++
}

// cursor is a position in a strided operand.
type cursor struct {
	at    int // offset of the next element
	index [tensor.MaxRank]int
}

// seek moves to the position of the result's element i.
func (c *cursor) seek(o *operand, i int) {
	c.at = 0
	for d := range o.rank {
		c.index[d] = i % o.sizes[d]
		i /= o.sizes[d]
		c.at += c.index[d] * o.strides[d]
	}
}

// advance moves n steps in dimension d, at most to its end; the dimensions inside of it are at their start.
func (c *cursor) advance(o *operand, d, n int) {
	c.index[d] += n
	c.at += n * o.strides[d]
	for c.index[d] == o.sizes[d] {
		c.at -= o.sizes[d] * o.strides[d]
		c.index[d] = 0
		if d++; d == o.rank {
			return
		}
		c.index[d]++
		c.at += o.strides[d]
	}
}

// run returns the next n elements in place, if they are adjacent in memory.
func (c *cursor) run(o *operand, n int) ([]byte, bool) {
	if o.strides[0] != 1 || n > o.sizes[0]-c.index[0] {
		return nil, false
	}
	b := o.data[c.at*o.size : (c.at+n)*o.size]
	c.advance(o, 0, n)
	return b, true
}

// gather copies the next n elements to dst, one after the other.
func (c *cursor) gather(o *operand, dst []byte, n int) {
	strided.BySize(o.size, gather[uint8], gather[uint16], gather[uint32], gather[uint64], gather[complex128])(c, o, dst[:n*o.size])
}

func gather[T tensor.Element](c *cursor, o *operand, to []byte) {
	dst, src := tensor.View[T](to), tensor.View[T](o.data)
	for len(dst) > 0 {
		n := min(o.sizes[0]-c.index[0], len(dst))
		switch stride := o.strides[0]; stride {
		case 0:
			strided.Fill(dst[:n], src[c.at])
		case 1:
			copy(dst[:n], src[c.at:])
		default:
			for i, at := 0, c.at; i < n; i, at = i+1, at+stride {
				dst[i] = src[at]
			}
		}
		if times := c.repeats(o, len(dst)); times > 1 {
			strided.Repeat(dst[:times*n], n)
			dst = dst[times*n:]
			c.advance(o, 1, times)
			continue
		}
		dst = dst[n:]
		c.advance(o, 0, n)
	}
}

// repeats returns how often the innermost dimension is repeated within the next n elements, if it starts here and the
// one around it is broadcast.
func (c *cursor) repeats(o *operand, n int) int {
	if o.rank < 2 || o.strides[1] != 0 || c.index[0] != 0 {
		return 0
	}
	return min(o.sizes[1]-c.index[1], n/o.sizes[0])
}
