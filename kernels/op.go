// Package kernels defines what an operator is: its schema, its function, the
// context it runs in, and sets of operators that a runtime looks names up in.
// The operators themselves are in the packages below.
package kernels

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Func computes one operator. a holds the arguments of the schema in order, then
// the slot of the returned value (for an out-variant the out argument again), and
// has been checked against the schema: a slot that the schema calls a Tensor holds
// one. Shapes, element types, ranges and dim orders are the function's to check.
//
// It resizes its outs before it writes them, writes every element of them, and
// leaves its other arguments alone. An out never shares bytes with an input unless
// the schema marks the input as mutated. Where the shapes decide all it does, it may
// leave behind how to do it again ([Ctx.Repeat]).
type Func func(c *Ctx, a Args) error

// Op is one row of an operator table.
type Op struct {
	// Schema is the operator's signature as ATen writes it, with its namespace:
	//
	//	aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)
	//
	// Arguments marked ! after the star are outs: written whole. Those marked !
	// before it are read and written in place. A result after an arrow is the slot
	// of a value without an out argument ("-> SymInt"), "-> Tensor(a)" says that the
	// result shares the bytes of the argument marked (a), and "-> ()" that a call has
	// no slot for a result.
	Schema string
	Func   Func
	DTypes string // element types accepted, in the words of docs/operators.md
	Family Family // numeric contract
	Note   string // what a user should know: deviations, limits
	Rows   bool   // outs lie in rows: the exporter recorded the strides of a transposed view
	Random bool   // draws from the context's random source
	// Pure says that a call does nothing but compute its outs and results from its
	// arguments, and the same from the same ones: it may be made once, at load. An
	// operator that marks an argument as mutated in its schema is pure beside that.
	Pure   bool
	Quants []Quant // the arguments whose scale and zero point the call tells
}

// Quant names the arguments of an operator, by index, that say how a tensor is
// quantised, be it an input or an input's values before or after the call.
type Quant struct{ Tensor, Scale, ZeroPoint int }

// Pure marks the rows of a table as pure, but for those that draw random numbers.
// The table itself stays as it is.
func Pure(table []Op) []Op {
	table = slices.Clone(table)
	for i := range table {
		table[i].Pure = !table[i].Random
	}
	return table
}

// Name is the full name, overload included: "aten::add.out".
func (o *Op) Name() string {
	name, _, _ := strings.Cut(o.Schema, "(")
	return name
}

// Family is the numeric contract of an operator: how far its float results may be
// from the exact ones (see [Family.Tolerance]).
type Family uint8

// Families, from the strictest.
const (
	Exact     Family = iota // bytes are equal
	Arith                   // one correctly rounded operation, or two
	Pointwise               // transcendental functions, element by element
	Sum                     // sums of products; the order of additions is free
	Loose                   // sums inside transcendental functions: softmax, norms, distances
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

// NewSet joins tables; where a name occurs twice the later row wins.
func NewSet(tables ...[]Op) *Set {
	s := &Set{ops: make(map[string]*entry)}
	for _, t := range tables {
		for i := range t {
			s.ops[t[i].Name()] = &entry{op: &t[i]}
		}
	}
	return s
}

// With is a set with further operators; where a name occurs already the new row wins.
func (s *Set) With(rows ...Op) *Set {
	more := &Set{ops: maps.Clone(s.ops)}
	for i := range rows {
		more.ops[rows[i].Name()] = &entry{op: &rows[i]}
	}
	return more
}

// Lookup finds an operator and its parsed schema by full name ("aten::add.out").
// ok is false where the set has no such operator; err reports a schema that does
// not parse, a mistake of the table.
func (s *Set) Lookup(name string) (op *Op, sig *Signature, ok bool, err error) {
	e, ok := s.ops[name]
	if !ok {
		return nil, nil, false, nil
	}
	e.once.Do(func() { e.sig, e.err = ParseSchema(e.op.Schema) })
	return e.op, e.sig, true, e.err
}

// Names lists the operators, unordered.
func (s *Set) Names() []string {
	names := make([]string, 0, len(s.ops))
	for n := range s.ops {
		names = append(names, n)
	}
	return names
}

// Args are the argument slots of a call, the return slot last.
type Args []*tensor.Value

// Tensor is argument i, which the schema calls a Tensor.
func (a Args) Tensor(i int) *tensor.Tensor { return a[i].Tensor }

// OptTensor is argument i, or nil for None.
func (a Args) OptTensor(i int) *tensor.Tensor {
	if a[i].Kind == tensor.None {
		return nil
	}
	return a[i].Tensor
}

// Tensors is a list argument, nil entries for None. Valid until the function returns.
func (a Args) Tensors(i int) []*tensor.Tensor { return a[i].TensorList() }

// Int is an int or SymInt argument.
func (a Args) Int(i int) int64 { return a[i].Int }

// OptInt is an int argument, or def for None.
func (a Args) OptInt(i int, def int64) int64 {
	if a[i].Kind == tensor.None {
		return def
	}
	return a[i].Int
}

// Float is a float argument; an Int value counts as its float.
func (a Args) Float(i int) float64 { return a.Scalar(i).Float() }

// Bool is a bool argument.
func (a Args) Bool(i int) bool { return a[i].Bool }

// Str is a str argument, or "" for None.
func (a Args) Str(i int) string {
	if a[i].Kind == tensor.None {
		return ""
	}
	return a[i].Str
}

// Ints is an int[] argument, nil for None. Valid until the function returns.
func (a Args) Ints(i int) []int64 {
	if a[i].Kind == tensor.None {
		return nil
	}
	return a[i].IntList()
}

// Floats is a float[] argument, nil for None.
func (a Args) Floats(i int) []float64 {
	if a[i].Kind == tensor.None {
		return nil
	}
	return a[i].Doubles
}

// Bools is a bool[] argument, nil for None.
func (a Args) Bools(i int) []bool {
	if a[i].Kind == tensor.None {
		return nil
	}
	return a[i].Bools
}

// IsNone reports whether argument i was left out.
func (a Args) IsNone(i int) bool { return a[i].Kind == tensor.None }

// Scalar is a Scalar argument.
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
