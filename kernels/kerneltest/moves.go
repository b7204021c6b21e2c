package kerneltest

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// checkMoves checks that Moves says what an operator does in the calls with expected values: with elements that are all
// different, each element of the outs is one of them, at the same position whatever their values, or a fixed number.
func checkMoves(set *kernels.Set, op *kernels.Op, sig *kernels.Signature, cases []Case) error {
	if slices.ContainsFunc(sig.Args, func(a kernels.Arg) bool { return a.Mutated }) {
		return nil // passes know no operators that update arguments
	}
	moves, computes := false, false
	cases = append(cases, realCases(op.Name(), sig)...)
	for i := range cases {
		m := &movement{set: set, call: &cases[i]}
		if ok, shown := m.observe(); shown {
			moves, computes = moves || ok, computes || !ok
		}
	}
	switch {
	case op.Moves && computes:
		return errors.New("computes elements, though its row has Moves")
	case op.Moves && !moves:
		return errors.New("no call with an expected value shows that it moves elements, as its row says")
	case !op.Moves && moves && !computes:
		return errors.New("only moves elements: its row needs Moves")
	}
	return nil
}

// realCases are the calls of real programs. Their results are unknown.
func realCases(name string, sig *kernels.Signature) (cases []Case) {
	in := len(inputTypes(sig))
	for _, args := range calls()[name] {
		if len(args) >= len(sig.Args) {
			cases = append(cases, Case{Op: name, Args: args[:in], Outs: args[in:len(sig.Args)], Want: args[len(sig.Args):]})
		}
	}
	return cases
}

// movement observes where the elements of a call come from.
type movement struct {
	set  *kernels.Set
	call *Case
	rand *rand.Rand

	sources map[complex128]int // the positions of the elements of this run, in the order of the arguments
	origin  []origin           // by element of the outs

	exhausted bool // there are more elements than different ones of their type
}

// origin is what the value of an element may be: that of a source at the same position in all runs, or a fixed number.
type origin struct {
	source int
	number complex128
	moved  bool
	fixed  bool
}

// observed is how often a call is observed: a function of the elements selects others soon.
const observed = 4

// fewest and most sources of a call that shows something: of few elements, a reduction can select the only one.
const fewest, most = 4, 1 << 10

// attempts bounds the search for another element.
const attempts = 64

// observe reports whether a call only moves elements. shown is false if the call does not show that.
func (m *movement) observe() (moves, shown bool) {
	if !m.sameType() {
		return false, false
	}
	for run := range observed {
		m.rand, m.sources = rand.New(rand.NewPCG(uint64(run), 1)), make(map[complex128]int)
		outs, ok := m.run()
		if !ok || len(m.sources) < fewest {
			return false, false
		}
		if run == 0 {
			m.begin(outs)
		}
		if !m.narrow(outs) {
			return false, true
		}
	}
	moved := slices.ContainsFunc(m.origin, func(o origin) bool { return o.moved && !o.fixed })
	return moved, moved
}

// sameType reports whether all tensors of the call have one type of numbers, and not too many of them.
func (m *movement) sameType() bool {
	d, same, n := tensor.Bool, true, 0
	each(slices.Concat(m.call.Args, m.call.Outs), func(t *tensor.Tensor) {
		same = same && (t.DType == d || d == tensor.Bool)
		d, n = t.DType, n+t.Numel()
	})
	return same && d != tensor.Bool && n <= most
}

// each calls f for the tensors among arguments.
func each(args []any, f func(t *tensor.Tensor)) {
	for _, a := range args {
		switch a := a.(type) {
		case *tensor.Tensor:
			f(a)
		case []*tensor.Tensor:
			for _, t := range a {
				if t != nil {
					f(t)
				}
			}
		}
	}
}

// run calls the operator with other elements. ok is false if the outs cannot contain them.
func (m *movement) run() (outs []complex128, ok bool) {
	call := *m.call
	call.Args = slices.Clone(call.Args)
	for i, a := range call.Args {
		switch a := a.(type) {
		case *tensor.Tensor:
			call.Args[i] = m.fill(a)
		case []*tensor.Tensor:
			list := make([]*tensor.Tensor, len(a))
			for j, t := range a {
				if t != nil {
					list[j] = m.fill(t)
				}
			}
			call.Args[i] = list
		}
	}
	k, err := call.call(m.set)
	if err != nil || m.exhausted {
		return nil, false
	}
	if refused, broken := k.run(kernels.NewCtx(nil)); refused != nil || broken != nil {
		return nil, false
	}
	for _, g := range k.written {
		outs = append(outs, elements(g.t)...)
	}
	return outs, true
}

// fill copies a tensor, with elements that are all different.
func (m *movement) fill(t *tensor.Tensor) *tensor.Tensor {
	c := tensor.Make(t.DType, t.Sizes, t.DimOrder, t.Dynamism)
	if t.Dynamism != tensor.Static {
		c.Limit(t.Capacity())
	}
	c.Bind(tensor.AlignedBytes(t.NBytes()))
	size := t.DType.Size()
	for i := range c.Numel() {
		m.distinct(c.Data[i*size:(i+1)*size], t.DType)
	}
	return c
}

// distinct sets an element to one that no other one has, unless the type has too few.
func (m *movement) distinct(b []byte, d tensor.DType) {
	for range attempts {
		m.draw(b, d)
		x := element(b, d)
		if _, ok := m.sources[x]; !ok {
			m.sources[x] = len(m.sources)
			return
		}
	}
	m.exhausted = true
}

// draw sets an element to a random one: of either sign, and far from the bounds that calls have.
func (m *movement) draw(b []byte, d tensor.DType) {
	switch {
	case d.IsInt():
		lo, hi := d.IntRange()
		lo, hi = max(lo, -1<<20), min(hi, 1<<20)
		tensor.Put(b, d, lo+m.rand.Int64N(hi-lo+1))
	case d.IsComplex():
		half, part := len(b)/2, partOf[d]
		tensor.Put(b[:half], part, 200*m.rand.NormFloat64())
		tensor.Put(b[half:], part, 200*m.rand.NormFloat64())
	default:
		tensor.Put(b, d, 200*m.rand.NormFloat64())
	}
}

// begin notes the origins in the first run.
func (m *movement) begin(outs []complex128) {
	m.origin = make([]origin, len(outs))
	for i, x := range outs {
		at, ok := m.sources[x]
		m.origin[i] = origin{source: at, number: x, moved: ok, fixed: true}
	}
}

// narrow excludes the origins that do not explain the outs, and reports whether all elements still have one.
func (m *movement) narrow(outs []complex128) bool {
	if len(outs) != len(m.origin) {
		return false
	}
	for i, x := range outs {
		at, ok := m.sources[x]
		o := &m.origin[i]
		o.moved, o.fixed = o.moved && ok && at == o.source, o.fixed && x == o.number
		if !o.moved && !o.fixed {
			return false
		}
	}
	return true
}

// elements returns the elements of a tensor.
func elements(t *tensor.Tensor) []complex128 {
	list, size := make([]complex128, t.Numel()), t.DType.Size()
	for i := range list {
		list[i] = element(t.Data[i*size:(i+1)*size], t.DType)
	}
	return list
}

func element(b []byte, d tensor.DType) complex128 {
	if part := partOf[d]; d.IsComplex() {
		half := len(b) / 2
		re, _ := tensor.Get[float64](b[:half], part)
		im, _ := tensor.Get[float64](b[half:], part)
		return complex(re, im)
	}
	x, _ := tensor.Get[float64](b, d)
	return complex(x, 0)
}

// partOf are the types of the parts of complex numbers.
var partOf = map[tensor.DType]tensor.DType{tensor.Complex64: tensor.Float32, tensor.Complex128: tensor.Float64}
