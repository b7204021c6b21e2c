package rows

import (
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// facts are what is known of the values that a step reads and writes. The size of a dimension of rows is a multiple of their
// number: each has as many indices, one after the other.
type facts interface {
	rowsOf(v int) int // the dimension of the rows of a tensor, None if it is the same for all rows
	sizes(v int) []int
	count() int // the number of rows
	// number returns a number. ok is false if it differs between calls of other numbers of rows, or is not known yet.
	number(v int) (n int64, ok bool)
	counted(v int) dependence // of a number
}

// call is a step that calls an operator.
type call struct {
	facts
	s *ir.Step
	m *ir.Method
}

// rule returns the dimension of the rows of the results. ok is false if an element of these may depend on several rows. At least
// one operand has rows, or a list of sizes depends on their number.
type rule func(c *call) (dim int, ok bool)

// rules are those of the flows. Operators of another flow do not compute row by row.
var rules = [opclass.Flows]rule{
	opclass.Elements:   elementRows,
	opclass.Spread:     spreadRows,
	opclass.Filled:     func(c *call) (int, bool) { return c.sizedBy(0) },
	opclass.Reshaped:   reshapedRows,
	opclass.Along:      alongRows,
	opclass.Inner0:     innerRows(func(*call) int { return 0 }),
	opclass.Inner1:     innerRows(func(*call) int { return 1 }),
	opclass.Inner2:     innerRows(func(*call) int { return 2 }),
	opclass.Inner3:     innerRows(func(*call) int { return 3 }),
	opclass.Normalized: innerRows(func(c *call) int { return len(c.items(1)) }),
	opclass.Padded:     innerRows(func(c *call) int { return (len(c.items(1)) + 1) / 2 }),
	opclass.Product:    innerRows(func(*call) int { return 1 }),
	opclass.Samples:    sampleRows,
	opclass.Permuted:   permutedRows,
	opclass.Lookup:     lookupRows,
	opclass.Indexed:    indexedRows,
	opclass.Pairs:      pairRows,
	opclass.Gathered:   gatheredRows,
	opclass.Joined:     joinedRows,
	opclass.Products:   productRows,
	opclass.AddProduct: addProductRows,
}

// countArgs are the arguments that may depend on the number of rows: their rules, and those of the sizes, see to that.
var countArgs = map[string]bool{"size": true, "repeats": true, "N": true}

// rows returns the dimension of the rows of the results of an operator.
func (c *call) rows() (dim int, ok bool) {
	r := rules[c.s.Op.Flow]
	if r == nil || c.s.Own || c.s.Op.Random || !c.s.Op.Pure || len(c.s.Updates) > 0 {
		return None, false
	}
	for p := range c.s.Sig.Args {
		if a := &c.s.Sig.Args[p]; !a.Out && !countArgs[a.Name] && c.counts(c.s.Args[p]) {
			return None, false
		}
	}
	return r(c)
}

// counts reports whether a number, or one in a list, differs between calls of other numbers of rows.
func (c *call) counts(v int) bool {
	if c.m.Values[v].Kind == tensor.KindIntList {
		return slices.ContainsFunc(c.m.Values[v].Items(), c.counts)
	}
	return c.counted(v) != fixed
}

// arg returns the first of the arguments of these names, -1 if there is none.
func (c *call) arg(names ...string) int {
	return slices.IndexFunc(c.s.Sig.Args, func(a kernels.Arg) bool { return slices.Contains(names, a.Name) })
}

// items returns the numbers of a list, or a number as a list.
func (c *call) items(p int) []int {
	if v := c.s.Args[p]; c.m.Values[v].Kind == tensor.KindInt {
		return c.s.Args[p : p+1]
	}
	return c.m.Values[c.s.Args[p]].Items()
}

// tensors returns the tensors of an operand.
func (c *call) tensors(p int) []int {
	switch x := &c.m.Values[c.s.Args[p]]; x.Kind {
	case tensor.KindTensor:
		return c.s.Args[p : p+1]
	case tensor.KindTensorList, tensor.KindOptionalTensorList:
		return slices.DeleteFunc(slices.Clone(x.Items()), func(v int) bool { return v < 0 || c.m.Values[v].Kind != tensor.KindTensor })
	}
	return nil
}

// only returns the dimension of the rows of operand p, if no other one has rows. A tensor may be several operands.
func (c *call) only(p int) (x, dim int, ok bool) {
	for q := range c.s.Sig.Args {
		if c.s.Sig.Args[q].Out {
			continue
		}
		for _, v := range c.tensors(q) {
			if (c.rowsOf(v) != None) != (p == q) {
				return 0, None, false
			}
		}
	}
	x = c.s.Args[p]
	return x, c.rowsOf(x), c.m.Values[x].Kind == tensor.KindTensor
}

// same returns the dimension that is that of the rows of all tensors, which have as many indices there.
func (c *call) same() (dim int, ok bool) {
	first := c.s.Reads[0]
	dim = c.rowsOf(first)
	if dim == None {
		return None, false
	}
	for _, v := range c.s.Reads {
		if c.rowsOf(v) != dim || c.sizes(v)[dim] != c.sizes(first)[dim] {
			return None, false
		}
	}
	return dim, true
}

// behind returns the number of dimensions after that of the rows.
func (c *call) behind(v int) int { return len(c.sizes(v)) - 1 - c.rowsOf(v) }

// out returns the first result.
func (c *call) out() int { return c.s.Writes[0] }

// elementRows requires that all rows are in the same dimension from the end, and that tensors without rows have one element there.
func elementRows(c *call) (int, bool) {
	behind := None
	for _, v := range c.s.Reads {
		if c.rowsOf(v) != None {
			behind = c.behind(v)
		}
	}
	dim := len(c.sizes(c.out())) - 1 - behind
	if behind == None || dim < 0 {
		return None, false
	}
	n := c.sizes(c.out())[dim]
	for _, v := range c.s.Reads {
		at := len(c.sizes(v)) - 1 - behind
		if rows := c.rowsOf(v); rows != None && (rows != at || c.sizes(v)[at] != n) || rows == None && at >= 0 && c.sizes(v)[at] != 1 {
			return None, false
		}
	}
	return dim, true
}

// spreadRows requires of a tensor with rows that these are not repeated: the number for them is -1 or 1, or depends on the number
// of rows. Another tensor has rows where the number depends on that.
func spreadRows(c *call) (int, bool) {
	x, list := c.s.Args[0], c.items(1)
	if c.rowsOf(x) == None {
		dim, ok := c.sizedBy(1)
		at := dim + len(c.sizes(x)) - len(list)
		return dim, ok && (at < 0 || c.sizes(x)[at] == 1)
	}
	dim, ok := elementRows(c)
	i := dim + len(list) - len(c.sizes(c.out()))
	if !ok || i < 0 {
		return None, false
	}
	n, known := c.number(list[i])
	return dim, !c.othersCount(list, i) && (known && n == c.spreadOne() || c.counted(list[i]) == perRow)
}

// othersCount reports whether numbers of a list other than i depend on the number of rows.
func (c *call) othersCount(list []int, i int) bool {
	return slices.ContainsFunc(slices.Delete(slices.Clone(list), i, i+1), c.counts)
}

// spreadOne returns the number that repeats no row.
func (c *call) spreadOne() int64 {
	if c.arg("repeats") >= 0 {
		return 1
	}
	return -1
}

// sizedBy returns the only position of a list of sizes whose number depends on that of the rows.
func (c *call) sizedBy(p int) (dim int, ok bool) {
	dim = None
	for i, v := range c.items(p) {
		if !c.counts(v) {
			continue
		}
		if dim != None || c.counted(v) != perRow {
			return None, false
		}
		dim = i
	}
	return dim, dim != None
}

// reshapedRows requires that the rows divide the memory as before, and that the sizes follow their number.
func reshapedRows(c *call) (int, bool) {
	x, dim, ok := c.only(0)
	if !ok {
		return None, false
	}
	to := split(c.sizes(x), c.sizes(c.out()), dim, c.count())
	list := c.items(1)
	if to == None || to >= len(list) {
		return None, false
	}
	n, known := c.number(list[to])
	return to, !c.othersCount(list, to) && (known && n == -1 || c.counted(list[to]) == perRow)
}

// split returns the dimension of the rows of a tensor in another shape, None if there is none.
func split(from, to []int, dim, rows int) int {
	before, _ := tensor.Product(from[:dim])
	all, _ := tensor.Product(from)
	if n, _ := tensor.Product(to); n != all || rows < 1 {
		return None
	}
	lead := 1
	for i, n := range to {
		if lead == before && n%rows == 0 && n > 0 {
			return i
		}
		lead *= n
	}
	return None
}

// alongRows requires that the rows are not along the dimensions in an argument. Those before the rows may come or go.
func alongRows(c *call) (int, bool) {
	p := c.arg("dim", "dims", "axis")
	x, rows, ok := c.only(0)
	if p < 0 || !ok || len(c.items(p)) == 0 {
		return None, false
	}
	if c.s.Op.Class == opclass.Slice && c.keepsAll() {
		return rows, true
	}
	have, want := len(c.sizes(x)), len(c.sizes(c.out()))
	dim, changed := rows, 0
	for _, v := range c.items(p) {
		n, ok := c.number(v)
		if n < 0 {
			n += int64(max(have, want))
		}
		if !ok || n < 0 || n == int64(rows) && want <= have {
			return None, false
		}
		switch { // the sizes of a result are those of squeezed dimensions, too
		case want > have && n <= int64(rows):
			dim, changed = dim+1, changed+1
		case want > have:
			changed++
		case want < have && (have-want == len(c.items(p)) || c.sizes(x)[n] == 1):
			changed--
			if n < int64(rows) {
				dim--
			}
		}
	}
	return dim, want-have == changed
}

// keepsAll reports whether a slice is that of all indices, however many there are.
func (c *call) keepsAll() bool {
	start, end := c.s.Args[2], c.s.Args[3]
	first, ok := c.number(start)
	last, bounded := c.number(end)
	step, one := c.number(c.s.Args[4])
	return (ok && first == 0 || c.m.Values[start].Kind == tensor.None) && (bounded && last == math.MaxInt64 || c.m.Values[end].Kind == tensor.None) &&
		one && step == 1
}

// innerRows returns the rule of operators that combine the last dimensions of the first operand.
func innerRows(inner func(c *call) int) rule {
	return func(c *call) (int, bool) {
		x, dim, ok := c.only(0)
		return dim, ok && dim < len(c.sizes(x))-inner(c)
	}
}

// sampleRows requires that the rows are samples: the first of all dimensions that the operator knows.
func sampleRows(c *call) (int, bool) {
	x, dim, ok := c.only(0)
	if c.s.Op.Class == opclass.Convolution && len(c.sizes(x)) != len(c.sizes(c.s.Args[1])) {
		return None, false
	}
	return dim, ok && dim == 0 && len(c.sizes(x)) > 1
}

func permutedRows(c *call) (int, bool) {
	x, rows, ok := c.only(0)
	rank := len(c.sizes(x))
	order := make([]int, rank)
	for i := range order {
		order[i] = i
	}
	at := func(v int) int {
		n, known := c.number(v)
		if n < 0 {
			n += int64(rank)
		}
		ok = ok && known && n >= 0 && n < int64(rank)
		return max(min(int(n), rank-1), 0)
	}
	switch p, q := c.arg("dims"), c.arg("dim0"); {
	case rank == 0:
	case p >= 0:
		if ok = ok && len(c.items(p)) == rank; ok {
			for i, v := range c.items(p) {
				order[i] = at(v)
			}
		}
	case q >= 0:
		i, j := at(c.s.Args[q]), at(c.s.Args[q+1])
		order[i], order[j] = order[j], order[i]
	default:
		slices.Reverse(order)
	}
	return slices.Index(order, rows), ok
}

// lookupRows requires that the rows are those of the indices.
func lookupRows(c *call) (int, bool) {
	_, dim, ok := c.only(c.arg("indices"))
	return dim, ok
}

// indexedRows requires that rows are before the dimensions that are indexed, or those of the only index of a tensor without rows.
func indexedRows(c *call) (int, bool) {
	x, list := c.rowsOf(c.s.Args[0]), c.tensors(1)
	is := func(v int) bool { return v >= 0 && c.m.Values[v].Kind == tensor.KindTensor }
	items := c.m.Values[c.s.Args[1]].Items()
	at := slices.IndexFunc(items, is)
	if at < 0 || slices.ContainsFunc(items[at:min(at+len(list), len(items))], func(v int) bool { return !is(v) }) {
		return None, false // if others are between them, the dimensions of the indices are the first of the result
	}
	if x != None {
		return x, x < at && !slices.ContainsFunc(list, func(v int) bool { return c.rowsOf(v) != None })
	}
	return at + c.rowsOf(list[0]), len(list) == 1 && c.m.Values[list[0]].Tensor.DType != tensor.Bool
}

func pairRows(c *call) (int, bool) {
	dim, ok := c.same()
	return dim, ok && dim < len(c.sizes(c.s.Args[0]))-1
}

func gatheredRows(c *call) (int, bool) {
	dim, ok := c.same()
	along, known := c.number(c.s.Args[1])
	if along < 0 {
		along += int64(len(c.sizes(c.s.Args[0])))
	}
	return dim, ok && known && along >= 0 && along != int64(dim)
}

// joinedRows requires that all tensors have rows, and are joined along another dimension, perhaps a new one.
func joinedRows(c *call) (int, bool) {
	if len(c.s.Reads) == 0 {
		return None, false
	}
	dim, ok := c.same()
	along, known := c.number(c.s.Args[1])
	have, want := len(c.sizes(c.s.Reads[0])), len(c.sizes(c.out()))
	if along < 0 {
		along += int64(want)
	}
	switch {
	case !ok || !known || along < 0:
		return None, false
	case want > have && along <= int64(dim):
		return dim + 1, true
	}
	return dim, along != int64(dim) || want > have
}

// productRows requires that either operand has rows in its outer dimension, or both among the lists.
func productRows(c *call) (int, bool) {
	a, b := c.s.Args[0], c.s.Args[1]
	rank := len(c.sizes(a))
	switch x, y := c.rowsOf(a), c.rowsOf(b); {
	case y == None:
		return x, x == rank-2
	case x == None:
		return y, y == rank-1
	default:
		dim, ok := c.same()
		return dim, ok && dim < rank-2
	}
}

// addProductRows requires that the first factor has rows, and that all rows add the same.
func addProductRows(c *call) (int, bool) {
	_, dim, ok := c.only(1)
	bias := c.sizes(c.s.Args[0])
	return dim, ok && dim == 0 && (len(bias) < 2 || bias[0] == 1)
}

// manyRows is the number of elements up to which operators sum several rows at a time, in an order that depends on the number of
// rows.
const manyRows = 256

// exact reports whether an operator computes the same bits for any number of rows, as far as engines do.
func (c *call) exact() bool {
	switch {
	case c.s.Op.Family < kernels.Sum || c.s.Op.Flow == opclass.Elements:
		return true
	case c.s.Op.Class == opclass.Mean:
		n, dims := 1, c.items(1)
		for _, v := range dims {
			if d, ok := c.number(v); ok {
				sizes := c.sizes(c.s.Args[0])
				n *= sizes[(int(d)+len(sizes))%len(sizes)]
			}
		}
		return n > manyRows
	}
	switch c.s.Op.Class {
	case opclass.MM, opclass.Linear, opclass.AddMM, opclass.Softmax, opclass.LayerNorm:
		return true
	}
	return false
}
