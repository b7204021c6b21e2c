package compiletest

import (
	"slices"

	"github.com/etrun-go/etrun/internal/flatbuf"
)

// Flags of nodes.
const (
	transposesWeights = 1
	alignsCorners     = 8
	keepsDims         = 0x40
)

// flagField is where a node has its flags, by tag; 2 for unary and 3 for elementwise nodes.
var flagField = map[uint8]int{2: 4, 5: 4, 7: 19, 13: 19, 39: 19, 9: 4, 10: 5, 11: 12, 14: 12, 20: 4, 25: 3, 29: 3, 32: 6, 33: 6, 34: 6, 38: 6, 35: 5}

// flagSets are the flags that a node may have, by tag; others have none.
var flagSets = map[uint8][]uint32{tagFullyConnected: {0, transposesWeights}, 9: {0, alignsCorners}, 11: {0, keepsDims}, 14: {0, keepsDims},
	tagGlobalPool: {keepsDims}}

const tagGlobalPool = 19

// flags checks the flags of a node.
func (n *xnode) flags(t flatbuf.Table) uint32 {
	at, ok := flagField[n.tag]
	if !ok {
		at = len(n.in) + 1
	}
	flags, want := t.Uint32(at, "flags", 0), flagSets[n.tag]
	if want == nil {
		want = []uint32{0}
	}
	if !slices.Contains(want, flags) {
		n.fault(26, "tag %d has the flags %x, want one of %x", n.tag, flags, want)
	}
	return flags
}

// reshape computes the sizes of the output as the library does. A tensor without dimensions has none there, too.
func (n *xnode) reshape(t flatbuf.Table) {
	flags := n.flags(t)
	for _, x := range n.in {
		if x != nil && x.shape == nil {
			return // an earlier fault
		}
	}
	if n.out.shape = n.sizes(t, flags, n.in[0].shape); n.out.shape == nil {
		n.fault(26, "tag %d does not fit operands of %v", n.tag, n.shapes())
	}
}

func (n *xnode) shapes() (list [][]int) {
	for _, x := range n.in {
		if x != nil {
			list = append(list, x.shape)
		}
	}
	return list
}

// sizes returns the sizes of the output, nil if the operands do not fit. in are those of the first operand.
func (n *xnode) sizes(t flatbuf.Table, flags uint32, in []int) []int {
	rank := len(in)
	switch n.tag {
	case tagFullyConnected:
		return n.connected(flags, in)
	case tagConv2d, tagDepthwiseConv2d, tagConvTranspose2d:
		return convolved(t, n.tag, in)
	case 11, 14:
		return pooled(t, n.tag == 14, in)
	case tagGlobalPool:
		if rank < 3 {
			return nil
		}
		if flags&keepsDims == 0 {
			return append(slices.Clone(in[:rank-3]), in[rank-1])
		}
		return append(slices.Clone(in[:rank-3]), 1, 1, in[rank-1])
	case 5, 10, 20, 35:
		return moved(t, n.tag, in)
	case 9:
		if rank != 4 {
			return nil
		}
		return []int{in[0], int(t.Uint32(0, "new_height", 0)), int(t.Uint32(1, "new_width", 0)), in[3]}
	case 32, 33, 34, 38:
		return n.concatenated(int(t.Int32(0, "axis", 0)))
	case 37:
		return multiplied(in, n.in[1].shape)
	case 3:
		if rank == 0 {
			return nil
		}
	}
	if len(n.in) == 2 {
		return broadcast(in, n.in[1].shape)
	}
	return in
}

// connected returns the sizes of a product with a filter.
func (n *xnode) connected(flags uint32, in []int) []int {
	filter := n.in[1].shape
	if flags&transposesWeights != 0 {
		filter = []int{filter[1], filter[0]}
	}
	if len(in) == 0 || len(filter) != 2 || in[len(in)-1] != filter[1] {
		return nil
	}
	return append(slices.Clone(in[:len(in)-1]), filter[0])
}

// broadcast returns the common sizes of two operands.
func broadcast(a, b []int) []int {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := append([]int{}, a...)
	for i, n := range b {
		at := &out[len(a)-len(b)+i]
		switch {
		case *at == 1:
			*at = n
		case n != 1 && n != *at:
			return nil
		}
	}
	return out
}

// multiplied returns the sizes of a product of batches of matrices.
func multiplied(a, b []int) []int {
	m, k := len(a)-2, len(b)-2
	if m < 0 || k < 0 || a[m+1] != b[k] {
		return nil
	}
	batches := broadcast(a[:m], b[:k])
	if batches == nil {
		return nil
	}
	return append(batches, a[m], b[k+1])
}

// extent reads a field of a window.
func extent(t flatbuf.Table, id int) int { return int(t.Uint32(id, "window", 0)) }

// convolved returns the sizes of a convolution.
func convolved(t flatbuf.Table, tag uint8, in []int) []int {
	out := make([]int, 2)
	for i := range out {
		if len(in) != 4 {
			return nil
		}
		pad := extent(t, i) + extent(t, i+2)
		if i == 1 {
			pad = extent(t, 1) + extent(t, 3)
		}
		window, stride := (extent(t, 4+i)-1)*extent(t, 8+i)+1, extent(t, 6+i)
		if tag == tagConvTranspose2d {
			out[i] = stride*(in[1+i]-1) + extent(t, 13+i) + window - pad
		} else {
			out[i] = windows(in[1+i]+pad, window, stride)
		}
		if out[i] <= 0 {
			return nil
		}
	}
	groups := extent(t, 12)
	channels := groups * extent(t, 10)
	if tag == tagDepthwiseConv2d {
		channels = groups
	}
	if in[3] != channels {
		return nil
	}
	return []int{in[0], out[0], out[1], groups * extent(t, 11)}
}

// windows returns how many windows there are.
func windows(n, window, stride int) int {
	if n < window || stride == 0 {
		return 0
	}
	return (n-window)/stride + 1
}

// pooled returns the sizes of a pool.
func pooled(t flatbuf.Table, dilates bool, in []int) []int {
	if len(in) != 4 {
		return nil
	}
	out := slices.Clone(in)
	for i := range 2 {
		dilation := 1
		if dilates {
			dilation = extent(t, 8+i)
		}
		pad := extent(t, i) + extent(t, i+2)
		out[1+i] = windows(in[1+i]+pad, (extent(t, 4+i)-1)*dilation+1, extent(t, 6+i))
		if out[1+i] == 0 {
			return nil
		}
	}
	return out
}

// moved returns the sizes of a transpose, pad, reshape or slice.
func moved(t flatbuf.Table, tag uint8, in []int) (out []int) {
	list := func(id int) (list []int) {
		for _, x := range flatbuf.Slice(t.Vector(id, "list", 4), flatbuf.Vector.Uint32) {
			list = append(list, int(x))
		}
		return list
	}
	if tag == 20 {
		return reshaped(in, list(1))
	}
	var a, b []int
	switch tag {
	case 5:
		a = list(1)
		b = a
	case 10:
		a, b = list(0), list(1)
	default:
		a, b = list(1), list(2)
	}
	if len(a) != len(in) || len(b) != len(in) {
		return nil
	}
	out = make([]int, len(in))
	for i, n := range in {
		switch tag {
		case 5:
			if a[i] >= len(in) {
				return nil
			}
			out[i] = in[a[i]]
		case 10:
			out[i] = n + a[i] + b[i]
		default:
			if out[i] = b[i]; a[i]+b[i] > n {
				return nil
			}
		}
	}
	return out
}

// reshaped returns the sizes of a reshape: 0 is what the others leave.
func reshaped(in, to []int) []int {
	left, at := elements(in), slices.Index(to, 0)
	out := append([]int{}, to...)
	for _, n := range to {
		if n > 0 && left%n == 0 {
			left /= n
		} else if n > 0 {
			return nil
		}
	}
	if at >= 0 {
		out[at] = left
	} else if left != 1 {
		return nil
	}
	return out
}

func elements(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	return n
}

// concatenated returns the sizes of a concatenation.
func (n *xnode) concatenated(axis int) []int {
	out := append([]int{}, n.in[0].shape...)
	if axis < 0 {
		axis += len(out)
	}
	for _, x := range n.in[1:] {
		if axis < 0 || axis >= len(out) || len(x.shape) != len(out) {
			return nil
		}
		for d, s := range x.shape {
			if d == axis {
				out[d] += s
			} else if s != out[d] {
				return nil
			}
		}
	}
	return out
}
