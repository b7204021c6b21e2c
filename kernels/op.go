// Package kernels defines operators: the schema, the function, the context it runs in, and sets of
// operators with lookup by name. The packages below it implement the operators.
package kernels

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Func computes one operator. a contains the arguments of the schema in order, then the slot of the
// result (for an out variant, the out argument again). Their kinds have been checked against the
// schema: a slot declared as Tensor contains one. The function itself must check shapes, element
// types, ranges and dim orders.
//
// It resizes its outs before it writes them, writes all their elements (except those of outs that
// [Ctx.Unread] reports), and does not modify other arguments. An out never shares memory with an input unless the schema marks the input as mutated.
// If the work depends only on the shapes, the function may register a repetition ([Ctx.Repeat]).
type Func func(c *Ctx, a Args) error

// Op is an entry of an operator table.
type Op struct {
	// Schema is the operator's signature in ATen's notation, with its namespace:
	//
	//	aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)
	//
	// Arguments marked ! after the star are outs, which are overwritten. Those marked ! before the
	// star are read and updated in place. A result after an arrow is the slot of a value without an
	// out argument ("-> SymInt"). "-> Tensor(a)" means that the result shares the memory of the
	// argument marked (a), and "-> ()" that a call has no result slot.
	Schema string
	Func   Func
	DTypes string // accepted element types, as in docs/operators.md
	Family Family // numeric contract
	Note   string // deviations and limits, for users
	Rows   bool   // outs are contiguous: the exporter recorded the strides of a transposed view
	Random bool   // uses the context's random numbers
	// Pure means that a call only computes its outs and results, and that they depend only on its
	// arguments: it may be executed once, at load. For an operator with arguments marked as
	// mutated, Pure covers everything else.
	Pure   bool
	Quants []Quant // arguments whose scale and zero point the call contains
	// Class is the function that the operator computes, if passes know it: they rewrite and lower calls of its class. An
	// application's operator with the name of another one is not rewritten, whatever its class.
	Class opclass.Class
	// Flow says which elements the elements of the outs depend on. It is checked against calls, like Moves.
	Flow opclass.Flow
	// Moves means that the outs consist of elements of the arguments, and of fixed numbers, at positions that do not depend
	// on elements. They may be converted to the out's type.
	Moves bool
	// Numbers says how the integers of results depend on those of arguments. Moves implies opclass.Kept.
	Numbers opclass.Numbers
	// Indexes are the arguments whose integers are positions in a tensor.
	Indexes []Index
	// Halves are the tensor arguments that may be float16 if the call computes in float32: places that keep what it stores in them.
	Halves []int
}

// Quant contains argument indices of an operator: Scale and ZeroPoint describe how Tensor is
// quantized, or its values before or after the call.
type Quant struct{ Tensor, Scale, ZeroPoint int }

// Index contains argument indices of an operator: the integers in At are positions in Tensor along a dimension: that in
// argument Dim, or -1-Dim if Dim is negative. A list of tensors in At has one for each dimension from 0 on. If Unless is not 0,
// they are positions only in calls in which that argument is none.
type Index struct{ Tensor, At, Dim, Unless int }

// Pure returns a copy of a table with Pure set for all operators that use no random numbers.
func Pure(table []Op) []Op {
	table = slices.Clone(table)
	for i := range table {
		table[i].Pure = !table[i].Random
	}
	return table
}

// Name returns the full name including the overload: "aten::add.out".
func (o *Op) Name() string {
	name, _, _ := strings.Cut(o.Schema, "(")
	return name
}

// Family is the numeric contract of an operator: the error allowed for its float results (see
// [Family.Tolerance]).
type Family uint8

// Families, strictest first.
const (
	Exact     Family = iota // equal bytes
	Arith                   // one or two correctly rounded operations
	Pointwise               // elementwise transcendental functions
	Sum                     // sums of products, in any order
	Loose                   // sums combined with transcendental functions: softmax, norms, distances
)

func (f Family) String() string {
	return [...]string{"exact", "arith", "pointwise", "sum", "loose"}[f]
}

// Set is an immutable collection of operators.
type Set struct {
	ops map[string]*entry
}

type entry struct {
	op   *Op
	once sync.Once
	sig  *Signature
	err  error
}

// NewSet returns the set of all operators in the tables; of entries with the same name the last
// wins.
func NewSet(tables ...[]Op) *Set {
	n := 0
	for _, t := range tables {
		n += len(t)
	}
	s, entries := &Set{ops: make(map[string]*entry, n)}, make([]entry, n)
	for _, t := range tables {
		for i := range t {
			entries[i].op = &t[i]
			s.ops[t[i].Name()] = &entries[i]
		}
		entries = entries[len(t):]
	}
	return s
}

// With returns a set with additional operators, which replace those of the same name.
func (s *Set) With(rows ...Op) *Set {
	more := &Set{ops: maps.Clone(s.ops)}
	for i := range rows {
		more.ops[rows[i].Name()] = &entry{op: &rows[i]}
	}
	return more
}

// Lookup returns an operator and its parsed schema by full name ("aten::add.out"). ok is false if
// the set does not contain it. err reports an invalid schema, which is a bug in the table.
func (s *Set) Lookup(name string) (op *Op, sig *Signature, ok bool, err error) {
	e, ok := s.ops[name]
	if !ok {
		return nil, nil, false, nil
	}
	e.once.Do(func() { e.sig, e.err = e.op.parse() })
	return e.op, e.sig, true, e.err
}

// parse parses the schema, and checks that its arguments are those of the class: passes rely on that.
func (o *Op) parse() (*Signature, error) {
	sig, err := ParseSchema(o.Schema)
	if err != nil || o.Class == opclass.None {
		return sig, err
	}
	var types []string
	for _, a := range sig.Args {
		if a.Mutated {
			return nil, fmt.Errorf("schema %q: an operator of class %v modifies no argument in place", o.Schema, o.Class)
		}
		if !a.Out {
			types = append(types, a.Type)
		}
	}
	if len(types) == len(sig.Args) || !o.Class.Accepts(types) {
		return nil, fmt.Errorf("schema %q: not the arguments of class %v", o.Schema, o.Class)
	}
	return sig, nil
}

// Names returns the names of the operators, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.ops)) }

// Tensor returns argument i, declared as Tensor.
func (a Args) Tensor(i int) *tensor.Tensor { return a[i].Tensor }

// OptTensor returns argument i, or nil for None.
func (a Args) OptTensor(i int) *tensor.Tensor {
	if a[i].Kind == tensor.None {
		return nil
	}
	return a[i].Tensor
}

// Tensors returns a list argument, with nil for None. It is valid until the function returns.
func (a Args) Tensors(i int) []*tensor.Tensor { return a[i].TensorList() }

// Int returns an int or SymInt argument.
func (a Args) Int(i int) int64 { return a[i].Int }

// OptInt returns an int argument, or def for None.
func (a Args) OptInt(i int, def int64) int64 {
	if a[i].Kind == tensor.None {
		return def
	}
	return a[i].Int
}

// Float returns a float argument; an Int value is converted.
func (a Args) Float(i int) float64 { return a.Scalar(i).Float() }

// Bool returns a bool argument.
func (a Args) Bool(i int) bool { return a[i].Bool }

// Str returns a str argument, or "" for None.
func (a Args) Str(i int) string {
	if a[i].Kind == tensor.None {
		return ""
	}
	return a[i].Str
}

// Ints returns an int[] argument, nil for None. It is valid until the function returns.
func (a Args) Ints(i int) []int64 {
	if a[i].Kind == tensor.None {
		return nil
	}
	return a[i].IntList()
}

// Floats returns a float[] argument, nil for None.
func (a Args) Floats(i int) []float64 {
	if a[i].Kind == tensor.None {
		return nil
	}
	return a[i].Doubles
}

// Bools returns a bool[] argument, nil for None.
func (a Args) Bools(i int) []bool {
	if a[i].Kind == tensor.None {
		return nil
	}
	return a[i].Bools
}

// IsNone reports whether argument i is None.
func (a Args) IsNone(i int) bool { return a[i].Kind == tensor.None }

// Scalar returns a Scalar argument.
func (a Args) Scalar(i int) Scalar {
	switch v := a[i]; v.Kind {
	case tensor.KindInt:
		return Scalar{Type: tensor.Int64, I: v.Int}
	case tensor.KindBool:
		s := Scalar{Type: tensor.Bool}
		if v.Bool {
			s.I = 1
		}
		return s
	default:
		return Scalar{Type: tensor.Float64, F: v.Double}
	}
}
