package graph

import "github.com/etrun-go/etrun/cbindings/xnn"

// RearrangeNode is a node type of the Go engine only: transposes and reshapes one after the other, of an input or of the
// concatenation of several, which are one strided copy of each input. Sizes must not change.
var RearrangeNode = NodeType{Tag: TagRearrange, Name: "Rearrange", Check: unchecked, Shape: rearrangeShape}

// RearrangeParams are the dimensions of the output as it is copied: some of those of its shape, split or merged.
type RearrangeParams struct {
	In   [maxJoined]Shape // of the inputs
	Dims [][]Dimension    // of each dimension of the output, outermost first
	Axis int              // the step of the dimension along which inputs follow each other; 0 for one input
}

// maxJoined is the largest number of inputs of a concatenation.
const maxJoined = 5

// Dimension is the n > 1 indices of a dimension, step elements apart in the concatenated inputs.
type Dimension struct{ N, Step int }

// Flat appends the dimensions that are copied to list, outermost in the output first.
func (r *RearrangeParams) Flat(list []Dimension) []Dimension {
	for _, dim := range r.Dims {
		list = append(list, dim...)
	}
	return list
}

// ManyDims is as many dimensions as most rearrangements have.
const ManyDims = xnn.MaxDims + 2

// Moves returns the sizes in the order of the input's memory, and for each dimension of the output its index among them.
func (r *RearrangeParams) Moves() (in Shape, perm []int) {
	in, order := Source(r.Flat(make([]Dimension, 0, ManyDims)))
	return in, order[:in.Rank]
}

// Source returns the sizes in the order of the inputs' memory, and for each dimension of flat its index among them.
func Source(flat []Dimension) (sizes Shape, perm [xnn.MaxDims]int) {
	sizes.Rank = len(flat)
	for i, d := range flat {
		for _, other := range flat {
			if other.Step > d.Step {
				perm[i]++
			}
		}
		sizes.Dim[perm[i]] = d.N
	}
	return sizes, perm
}

func rearrangeShape(_ *Graph, n *Node, s []Shape) error {
	r := Params[RearrangeParams](n)
	for i, v := range n.In {
		if s[v] != r.In[i] {
			return n.fault("sizes %v, declared as %v", s[v], r.In[i])
		}
	}
	out := Shape{Rank: len(r.Dims)}
	for i, dim := range r.Dims {
		out.Dim[i] = 1
		for _, d := range dim {
			out.Dim[i] *= d.N
		}
	}
	s[n.Out[0]] = out
	return nil
}
