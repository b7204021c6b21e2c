package rows

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// rule reports whether an operator computes each row of its result from the same rows of its operands. At least one operand
// has rows, and so has the result.
type rule func(f *finder, s *ir.Step) bool

// rules are those of the classes of operators. Operators of other classes do not compute row by row.
var rules = [opclass.Count]rule{
	opclass.MM:        productRows,
	opclass.Linear:    productRows,
	opclass.AddMM:     addmmRows,
	opclass.Softmax:   dimRows(1, false),
	opclass.LayerNorm: layerNormRows,
	opclass.Mean:      meanRows,
	opclass.Copy:      broadcastRows,
	opclass.View:      viewRows,
	opclass.Unsqueeze: dimRows(1, true),
	opclass.Squeeze:   dimsRows(1, true),
	opclass.Slice:     dimRows(1, false),
	opclass.Narrow:    dimRows(1, false),
	opclass.Permute:   permuteRows,
	opclass.Cat:       catRows,

	opclass.Quantize:   broadcastRows,
	opclass.Dequantize: broadcastRows,
}

func init() {
	for c := opclass.Abs; c <= opclass.DivScalar; c++ {
		rules[c] = broadcastRows
	}
}

// operatorRows reports whether an operator computes each row by itself.
func (f *finder) operatorRows(s *ir.Step) bool {
	if !slices.ContainsFunc(s.Reads, func(v int) bool { return f.plan.Dims[v] != None }) || len(s.Writes) == 0 {
		return false
	}
	if s.IsView() {
		return viewRows(f, s)
	}
	r := rules[s.Op.Class]
	return r != nil && len(s.Writes) == 1 && r(f, s)
}

// out returns the result of a step.
func out(s *ir.Step) int { return s.Writes[0] }

// behind returns the number of dimensions after that of the rows.
func (f *finder) behind(v int) int { return len(f.sizes(v)) - 1 - f.plan.Dims[v] }

// broadcastRows is the rule of functions of elements: operands and result have rows in the same dimension from the end, and
// constants one element there.
func broadcastRows(f *finder, s *ir.Step) bool {
	want := f.behind(out(s))
	for _, v := range s.Reads {
		sizes := f.sizes(v)
		switch {
		case f.plan.Dims[v] != None:
			if f.behind(v) != want {
				return false
			}
		case len(sizes) > want && outermost(sizes[:len(sizes)-want]) != None:
			return false
		}
	}
	return true
}

// onlyRows reports whether a value has rows and the others of a step none.
func (f *finder) onlyRows(s *ir.Step, of int) bool {
	for _, v := range s.Reads {
		if (f.plan.Dims[v] != None) != (v == of) {
			return false
		}
	}
	return true
}

// productRows is the rule of products with constants: the rows are not the inner dimension.
func productRows(f *finder, s *ir.Step) bool {
	x := s.Args[0]
	return f.onlyRows(s, x) && f.behind(x) > 0 && f.plan.Dims[out(s)] == f.plan.Dims[x]
}

// addmmRows also requires that all rows add the same.
func addmmRows(f *finder, s *ir.Step) bool {
	x, bias := s.Args[1], f.sizes(s.Args[0])
	return f.onlyRows(s, x) && f.plan.Dims[x] == 0 && f.plan.Dims[out(s)] == 0 && (len(bias) < 2 || bias[0] == 1)
}

// layerNormRows requires that the rows are not among the dimensions that are combined.
func layerNormRows(f *finder, s *ir.Step) bool {
	x, inner := s.Args[0], len(f.Values[s.Args[1]].Items())
	return f.onlyRows(s, x) && inner > 0 && f.behind(x) >= inner && f.plan.Dims[out(s)] == f.plan.Dims[x]
}

// viewRows requires that only dimensions after the rows change.
func viewRows(f *finder, s *ir.Step) bool {
	x, y := s.Args[0], out(s)
	inner := func(v int) int {
		n, _ := tensor.Product(f.sizes(v)[f.plan.Dims[v]+1:])
		return n
	}
	return f.plan.Dims[x] != None && inner(x) == inner(y)
}

// dimRows returns the rule of operators that act along the dimension in an argument: it is not that of the rows; if it comes or
// goes, it is after the rows.
func dimRows(arg int, changes bool) rule {
	return func(f *finder, s *ir.Step) bool {
		x, y := s.Args[0], out(s)
		d, ok := f.dim(s.Args[arg], max(len(f.sizes(x)), len(f.sizes(y))))
		rows := f.plan.Dims[x]
		return ok && f.onlyRows(s, x) && f.plan.Dims[y] == rows && (d > rows || d < rows && !changes)
	}
}

// dimsRows is the same for a list of dimensions, all after the rows.
func dimsRows(arg int, changes bool) rule {
	one := dimRows(arg, changes)
	return func(f *finder, s *ir.Step) bool {
		list := &f.Values[s.Args[arg]]
		if list.Kind == tensor.KindInt {
			return one(f, s)
		}
		x := s.Args[0]
		after := func(v int) bool {
			d, ok := f.dim(v, len(f.sizes(x)))
			return ok && d > f.plan.Dims[x]
		}
		items := list.Items()
		return list.Kind == tensor.KindIntList && len(items) > 0 && f.onlyRows(s, x) && f.plan.Dims[out(s)] == f.plan.Dims[x] &&
			!slices.ContainsFunc(items, func(v int) bool { return !after(v) })
	}
}

// manyRows is the number of elements up to which operators sum several rows at a time, in an order that depends on the number of
// rows.
const manyRows = 256

// meanRows requires that a sum has the same order for any number of rows.
func meanRows(f *finder, s *ir.Step) bool {
	n := 1
	for _, v := range f.Values[s.Args[1]].Items() {
		if d, ok := f.dim(v, len(f.sizes(s.Args[0]))); ok {
			n *= f.sizes(s.Args[0])[d]
		}
	}
	return n > manyRows && dimsRows(1, false)(f, s)
}

// permuteRows requires that the rows stay where they are.
func permuteRows(f *finder, s *ir.Step) bool {
	x := s.Args[0]
	rows := f.plan.Dims[x]
	if !f.onlyRows(s, x) || f.plan.Dims[out(s)] != rows {
		return false
	}
	for i, v := range f.Values[s.Args[1]].Items() {
		if d, ok := f.dim(v, len(f.sizes(x))); !ok || i <= rows && d != i {
			return false
		}
	}
	return true
}

// catRows requires that all operands have rows, and are joined along another dimension.
func catRows(f *finder, s *ir.Step) bool {
	y := out(s)
	d, ok := f.dim(s.Args[1], len(f.sizes(y)))
	return ok && d != f.plan.Dims[y] && !slices.ContainsFunc(s.Reads, func(v int) bool { return f.plan.Dims[v] != f.plan.Dims[y] })
}
