// Package lowering (no compatibility promise) defines what the runtime and the backends of this module exchange when
// parts of a method that the exporter did not lower are lowered at load: graphs of operators, and working memory in the
// memory plan.
package lowering

import (
	"context"
	"sync"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Graph is a region of a method that lowering offers to a backend: calls of ATen operators without
// control flow. Every tensor is written once, by one call, before it is read. Nothing in it is
// mutable: state, and arguments that a call updates in place, are never part of a region. The kinds
// of arguments match the schemas; backends check all further requirements of an operator.
type Graph struct {
	Method  string // the method it belongs to
	Index   int    // the delegate's index in the method that calls it
	Values  []GraphValue
	Calls   []GraphCall       // in the order of execution
	Inputs  []int             // values that the caller provides, in the order of the arguments
	Outputs []int             // values returned to the caller, as the arguments after the inputs; distinct, and none is an input
	Limits  delegate.Limits   // memory limits of the image
	Scratch *delegate.Scratch // see delegate.Payload
	Threads int               // see delegate.Payload
	// DescribeOnly: see delegate.Payload. Large constants that were computed at load may be zeros.
	DescribeOnly bool
	// Release frees the memory of constants of the graph and of its payloads that the image no longer
	// needs, see delegate.Payload. They are still read until the method calls the graph's image. nil: nothing
	// is freed.
	Release func(data []byte) bool
	// Kept is what the compiler keeps of the graph from one call to the next, such as its own form of
	// it. Nothing else reads it. If it has a method Drop(), that is called when the graph will not be
	// compiled, and is then not used any more.
	Kept any

	indexed sync.Once
	writers []int   // by value
	ends    []int32 // by value: where its readers end in the list, and where those of the next one begin
	readers []int
}

// Writer returns the index of the call that writes value v, -1 for inputs, constants and values
// that are not tensors.
func (g *Graph) Writer(v int) int {
	g.indexed.Do(g.index)
	return g.writers[v]
}

// Readers returns the indices of the calls that read tensor v, also through lists, in order and
// without duplicates. The caller of the graph additionally reads outputs.
func (g *Graph) Readers(v int) []int {
	g.indexed.Do(g.index)
	from := int32(0)
	if v > 0 {
		from = g.ends[v-1]
	}
	return g.readers[from:g.ends[v]:g.ends[v]]
}

// index lists the readers of all values one behind the other.
func (g *Graph) index() {
	n, list := len(g.Values), []int(nil)
	g.writers, g.ends = make([]int, n), make([]int32, n+1)
	each := func(add func(v, i int)) {
		g.forget()
		for i := range g.Calls {
			list = g.Reads(list[:0], i)
			for _, v := range list {
				if g.writers[v] != i { // used for the last reader
					g.writers[v] = i
					add(v, i)
				}
			}
		}
	}
	each(func(v, _ int) { g.ends[v+1]++ })
	for v := range n {
		g.ends[v+1] += g.ends[v]
	}
	g.readers = make([]int, g.ends[n])
	each(func(v, i int) {
		g.readers[g.ends[v]] = i
		g.ends[v]++
	})
	g.forget()
	for i := range g.Calls {
		list = g.Writes(list[:0], i)
		for _, v := range list {
			g.writers[v] = i
		}
	}
}

// forget clears the table of writers.
func (g *Graph) forget() {
	for v := range g.writers {
		g.writers[v] = -1
	}
}

// Reads appends the tensors that call i reads, including items of lists.
func (g *Graph) Reads(dst []int, i int) []int { return g.operands(dst, i, false) }

// Writes appends the tensors that call i writes, including items of lists.
func (g *Graph) Writes(dst []int, i int) []int { return g.operands(dst, i, true) }

func (g *Graph) operands(dst []int, i int, written bool) []int {
	c := &g.Calls[i]
	for k, v := range c.Args {
		if reads, writes := c.uses(k); written && writes || !written && reads {
			dst = g.tensors(dst, v)
		}
	}
	return dst
}

// uses reports how the call uses argument k. The slot of a result is a separate use only if the
// operator has no out argument.
func (c *GraphCall) uses(k int) (reads, writes bool) {
	switch {
	case c.View:
		writes = k == 1
	case c.Payload != nil:
		writes = k >= c.Payload.Inputs()
	case k == len(c.Sig.Args):
		return false, c.Sig.Result != nil
	default:
		writes = c.Sig.Args[k].Out
	}
	return !writes, writes
}

// tensors appends v if it is a tensor, and the tensors of a list.
func (g *Graph) tensors(dst []int, v int) []int {
	value := &g.Values[v]
	if value.Kind == tensor.KindTensor {
		return append(dst, v)
	}
	for _, item := range value.Items {
		if item >= 0 && g.Values[item].Kind == tensor.KindTensor {
			dst = append(dst, item)
		}
	}
	return dst
}

// Checker is implemented by units of graphs that check before a run whether they support its sizes.
type Checker interface {
	// Check prepares a run with these arguments and resizes the outputs, without writing any
	// element. After an error, Execute must not be called with them.
	Check(args []*tensor.Value) error
}

// GraphValue is a tensor, a number or a list. Only the fields of its Kind are meaningful.
type GraphValue struct {
	Kind     tensor.Kind
	Bool     bool
	DType    tensor.DType    // of a tensor
	Dynamism tensor.Dynamism // of a tensor

	Int     int64
	Double  float64
	Str     string
	Bools   []bool
	Doubles []float64
	Items   []int // values of a list; -1 is None in an optional tensor list

	// Fields of a tensor. Sizes are logical (in ATen's order), and upper bounds unless the tensor
	// is static.
	Sizes    []int
	DimOrder []uint8 // nil: contiguous
	Data     []byte  // contents of a constant, aligned to its elements and valid until the image is closed; else nil
	// Varies says how the dimensions of a tensor that is not static vary: 0 for not at all, those with the same number in the same way,
	// and those with a negative one, or of a nil list, in ways that are not known.
	Varies []int
}

// Scalar returns a value of a kind that does not refer to other values.
func (v *GraphValue) Scalar() tensor.Value {
	return tensor.Value{Kind: v.Kind, Bool: v.Bool, Int: v.Int, Double: v.Double, Str: v.Str, Bools: v.Bools, Doubles: v.Doubles}
}

// NBytes returns the size of a tensor at its declared sizes.
func (v *GraphValue) NBytes() int64 {
	n, _ := tensor.Product(v.Sizes)
	return int64(n) * int64(v.DType.Size())
}

// IsConst reports whether the value is a constant tensor.
func (v *GraphValue) IsConst() bool { return v.Kind == tensor.KindTensor && v.Data != nil }

// GraphCall is one call of a graph: a view if View is set, a payload if Payload is set, else an
// operator.
type GraphCall struct {
	Op  *kernels.Op        // an operator
	Sig *kernels.Signature // its schema
	// View is a reshape without a copy: Args[1] has the elements of Args[0] in the same memory
	// order, with its own sizes, and both are static. The exporter elided the instruction, or it is
	// executorch_prim::et_view. An et_view with varying sizes is an ordinary operator whose result
	// has the bytes of its first argument.
	View bool
	// Payload is the exporter's payload for the backend that compiles the graph and has opened the
	// payload. The graph contains its only call. Args are tensors.
	Payload Opened

	// Args are values: the operator's arguments in schema order and the result's slot, the operand
	// and the result of a view, or the payload's arguments.
	Args  []int
	Place string // chain and instruction in the file, for messages
}

// Merger is implemented by compilers whose graphs may contain calls of their own payloads: the
// exporter's delegates are merged with the calls between them.
type Merger interface {
	Compiler
	// Open reads and checks a payload as Compile does. Its Limits, Release and Scratch are
	// set before the image is made.
	Open(p *delegate.Payload) (Opened, error)
}

// Opened is a payload that its backend has checked, before it has an image.
type Opened interface {
	// Inputs returns the number of leading arguments that are inputs.
	Inputs() int
	// Compile makes the image, like delegate.Backend.Compile.
	Compile(ctx context.Context) (delegate.Image, error)
}

// Examined is implemented by opened payloads whose contents are known.
type Examined interface {
	Constants() []Constant
	// Reaches marks the outputs that depend on one of the inputs.
	Reaches(inputs []bool) (outputs []bool)
	Size() int // number of values and nodes, to which the time of Reaches is proportional
}

// Constant is a constant of a payload.
type Constant struct {
	Elements int
	Data     []byte // in the payload's type and order; must not be changed
}

// Brief returns the description of an image. It has no facts, operands and nodes if the image has a method Brief, because they take
// time: weights may have millions of scales.
func Brief(img delegate.Image) delegate.Info {
	if b, ok := img.(interface{ Brief() delegate.Info }); ok {
		return b.Brief()
	}
	return img.Info()
}

// Selector is implemented by compilers that support few operators. They are offered only graphs of
// these.
type Selector interface {
	// Unsupported returns the reason why no call of an operator is supported, "" if some may be.
	Unsupported(op *kernels.Op) string
}

// Compiler is implemented by backends that take graphs.
type Compiler interface {
	delegate.Backend
	// Accepts returns the reason why the backend does not support call i of a graph, "" if it does.
	// It may examine the call and the calls that compute and read its values, but must not depend
	// on the rest of the graph, which may be a whole method instead of a region.
	Accepts(g *Graph, i int) string
	// Measure returns the work of a run of the graph at the declared sizes. Nothing is compiled, and
	// libraries and devices need not be opened. An error is the reason why the backend does not
	// support the graph as a whole, or runs no graphs on this machine.
	Measure(g *Graph) (Work, error)
	// CompileGraph compiles a graph. The arguments of its units are the inputs, then the outputs,
	// as for payloads. An *Error with ErrUnsupported or ErrMemory means that the graph cannot be
	// compiled after all: its calls then run on operators.
	CompileGraph(ctx context.Context, g *Graph) (delegate.Image, error)
}

// Work is what a run of a graph computes on a backend.
type Work struct {
	Multiplications float64 // of products and convolutions
	Narrow          float64 // those of convolutions of few channels, which take longer each
	Elements        float64 // that other nodes compute
	Transposed      float64 // elements whose order in memory changes
}

// Writer is implemented by compilers that write graphs into files. It accepts only graphs that can be written.
type Writer interface {
	Compiler
	Write(g *Graph) (*Written, error)
}

// Written is a graph as a payload. Calls have the arguments of the graph, and its constants between the inputs and the
// outputs.
type Written struct {
	Constants []GraphValue // tensors in contiguous order, which share the memory of the graph's constants
	Weights   []Weight     // constants in the payload, which may be among the program's named data instead
	// Encode returns the payload in parts, which share the memory of the constants. It refers by their keys to the weights for which
	// named returns true.
	Encode func(named func(key string) bool) [][]byte
}

// Weight is a constant of a payload. Weights with equal keys have equal bytes, and are used in the same way: runtimes
// may share what they make of them.
type Weight struct {
	Key  string
	Data []byte
}
