package delegate

import (
	"context"
	"sync"
	"time"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Graph is a region of a method that lowering hands to a backend: calls without control
// flow, in ATen's vocabulary. Every tensor is written once, by one call, and before it is
// read. Nothing in it is mutable: state and arguments that a call writes in place are
// never part of a region. Arguments are of the kinds that schemas ask for; what else an
// operator wants of them is the backend's to check.
type Graph struct {
	Method  string // the method it belongs to
	Index   int    // the delegate's index in the method that calls it
	Values  []GraphValue
	Calls   []GraphCall // in the order of execution
	Inputs  []int       // values that a caller gives, in the order of the arguments
	Outputs []int       // values that a caller gets, the arguments behind the inputs; none repeats, none is an input
	Limits  Limits      // what the image may cost
	Scratch *Scratch    // see Payload

	indexed sync.Once
	writers []int
	readers [][]int
}

// Writer is the call that writes value v, -1 for inputs, constants and what is no tensor.
func (g *Graph) Writer(v int) int {
	g.indexed.Do(g.index)
	return g.writers[v]
}

// Readers lists the calls that read tensor v, in order, each once, through lists too.
// Outputs are read by the caller as well.
func (g *Graph) Readers(v int) []int {
	g.indexed.Do(g.index)
	return g.readers[v]
}

func (g *Graph) index() {
	g.writers, g.readers = make([]int, len(g.Values)), make([][]int, len(g.Values))
	for v := range g.writers {
		g.writers[v] = -1
	}
	var list []int
	for i := range g.Calls {
		list = g.Writes(list[:0], i)
		for _, v := range list {
			g.writers[v] = i
		}
		list = g.Reads(list[:0], i)
		for _, v := range list {
			if n := len(g.readers[v]); n == 0 || g.readers[v][n-1] != i {
				g.readers[v] = append(g.readers[v], i)
			}
		}
	}
}

// Reads appends the tensors that call i reads, items of lists included.
func (g *Graph) Reads(dst []int, i int) []int { return g.operands(dst, i, false) }

// Writes appends the tensors that call i writes, items of lists included.
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

// uses says what the call does with argument k. The slot of a result is another use only
// where the operator has no out argument.
func (c *GraphCall) uses(k int) (reads, writes bool) {
	switch {
	case c.View:
		writes = k == 1
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

// Checker is implemented by units of graphs that tell before a run whether they take it.
type Checker interface {
	// Check gets ready for a run with these arguments, and gives the outputs their sizes.
	// After an error Execute is not called with them; no element was written.
	Check(args []*tensor.Value) error
}

// GraphValue is a tensor, a number or a list. Only the fields that Kind names are meaningful.
type GraphValue struct {
	Kind    tensor.Kind
	Bool    bool
	Int     int64
	Double  float64
	Str     string
	Bools   []bool
	Doubles []float64
	Items   []int // of a list: values; -1 is None in an optional tensor list

	// Of a tensor. Sizes are logical (ATen's order), and upper bounds unless it is static.
	DType    tensor.DType
	Sizes    []int
	DimOrder []uint8 // nil: contiguous
	Dynamism tensor.Dynamism
	Data     []byte // the bytes of a constant, aligned to its elements, valid until the image is closed; nil for others
}

// Scalar is the value of a kind that refers to no other value.
func (v *GraphValue) Scalar() tensor.Value {
	return tensor.Value{Kind: v.Kind, Bool: v.Bool, Int: v.Int, Double: v.Double, Str: v.Str, Bools: v.Bools, Doubles: v.Doubles}
}

// NBytes is the size of a tensor at its declared sizes.
func (v *GraphValue) NBytes() int64 {
	n, _ := tensor.Product(v.Sizes)
	return int64(n) * int64(v.DType.Size())
}

// IsConst reports a tensor whose bytes are known.
func (v *GraphValue) IsConst() bool { return v.Kind == tensor.KindTensor && v.Data != nil }

// GraphCall is one call of a graph. It is a view where View is set, else an operator's.
type GraphCall struct {
	Op  *kernels.Op        // an operator
	Sig *kernels.Signature // its schema
	// View is a reshape without a copy: Args[1] has the elements of Args[0] in the same
	// order of memory, at its own sizes, and both are static. The exporter left out the
	// instruction, or it is executorch_prim::et_view. An et_view whose sizes vary is an
	// operator like others, one whose result has the bytes of its first argument.
	View bool

	Args  []int  // values: the operator's in the order of its schema with the result's slot last, or from and to
	Place string // chain and instruction in the file, for messages
}

// Compiler is implemented by backends that take graphs.
type Compiler interface {
	Backend
	// Accepts says why the backend cannot take call i of a graph, "" where it can. It
	// looks at the call and at what computes and reads its values, not at the whole graph,
	// which may be a method and not yet a region.
	Accepts(g *Graph, i int) string
	// Estimate is about how long a run of the graph takes, on one thread, on the engine
	// that would run it. Tensors of varying sizes have a share, 0 to 1, of the elements that
	// they have at their declared ones. It makes nothing. An error is why the backend cannot
	// take the graph as a whole.
	Estimate(g *Graph, share float64) (time.Duration, error)
	// Version is which engine runs graphs, as far as how long that takes depends on it.
	Version() string
	// CompileGraph makes an image of a graph. Its units take the inputs and then the
	// outputs as arguments, as those of a payload do. A graph that it cannot have after all
	// is an *Error with ErrUnsupported or ErrMemory: its calls then run as they are.
	CompileGraph(ctx context.Context, g *Graph) (Image, error)
}
