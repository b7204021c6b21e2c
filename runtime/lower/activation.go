package lower

import (
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// The operators that patterns are fused to.
const (
	siluOp      = "aten::silu.out"
	hardswishOp = "aten::hardswish.out"
)

// The calls that the patterns consist of.
var (
	sums      = []opclass.Class{opclass.Add, opclass.AddScalar}
	products  = []opclass.Class{opclass.Mul}
	quotients = []opclass.Class{opclass.Div, opclass.DivScalar}
	sigmoids  = []opclass.Class{opclass.Sigmoid}
)

// bound is a class of calls that clamp their operand: the argument indexes of the bounds, 0 if they are fixed.
type bound struct {
	class     []opclass.Class
	low, high int
}

var bounds = []bound{
	{[]opclass.Class{opclass.Clamp, opclass.Hardtanh}, 1, 2},
	{[]opclass.Class{opclass.Relu}, 0, 0},
}

// isOne reports whether step i is a call of one of the classes on float32 tensors of one shape: its first or second
// operand, and its out.
func (p *pass) isOne(i int, classes []opclass.Class) bool {
	if !p.isClass(i, classes...) {
		return false
	}
	s := &p.m.Steps[i]
	n := firstOut(s)
	out := s.Args[n]
	return p.m.Values[out].Tensor.DType == tensor.Float32 && slices.ContainsFunc(s.Args[:min(n, 2)], func(v int) bool {
		return p.m.Values[v].Kind == tensor.KindTensor && p.alike(v, out)
	})
}

// made returns the step, a call of one of the classes, whose result v is read by step i alone.
func (p *pass) made(i, v int, classes []opclass.Class) (step int, ok bool) {
	if p.m.Values[v].Kind != tensor.KindTensor {
		return 0, false
	}
	j, ok := p.producer(i, v)
	return j, ok && p.isOne(j, classes)
}

// fuseSiLU replaces x·sigmoid(x) by one call.
func fuseSiLU(p *pass, i int) bool {
	if !p.isOne(i, products) {
		return false
	}
	s := &p.m.Steps[i]
	for k := range 2 {
		x := s.Args[1-k]
		if j, ok := p.made(i, s.Args[k], sigmoids); ok && p.m.Steps[j].Args[0] == x && p.alike(x, s.Args[2]) {
			return p.fuse(siluOp, x, s.Args[2], i, j)
		}
	}
	return false
}

// fuseHardswish replaces x·clamp(x+3, 0, 6)/6 by one call.
func fuseHardswish(p *pass, i int) bool {
	s := &p.m.Steps[i]
	if !p.isOne(i, quotients) || !p.isNumber(s.Args[1], 6) {
		return false
	}
	product, ok := p.made(i, s.Args[0], products)
	if !ok {
		return false
	}
	for k := range 2 {
		factors := p.m.Steps[product].Args
		x := factors[1-k]
		if steps, ok := p.gate(product, factors[k], x); ok && p.alike(x, s.Args[2]) {
			return p.fuse(hardswishOp, x, s.Args[2], slices.Concat([]int{i, product}, steps)...)
		}
	}
	return false
}

// gate returns the steps that compute value v, read by step i alone, as clamp(x+3, 0, 6).
func (p *pass) gate(i, v, x int) (steps []int, ok bool) {
	low, high := math.Inf(-1), math.Inf(1)
	for len(steps) <= 2 {
		if j, ok := p.made(i, v, sums); ok {
			s := &p.m.Steps[j]
			ok = low == 0 && high == 6 && s.Args[0] == x && p.isNumber(s.Args[1], 3) && p.isNumber(s.Args[2], 1)
			return append(steps, j), ok
		}
		j, b := p.bounded(i, v)
		if b == nil {
			return nil, false
		}
		s := &p.m.Steps[j]
		low, high = max(low, p.bound(s, b.low, math.Inf(-1))), min(high, p.bound(s, b.high, math.Inf(1)))
		i, v, steps = j, s.Args[0], append(steps, j)
	}
	return nil, false
}

// bounded returns the step whose clamped result v is read by step i alone.
func (p *pass) bounded(i, v int) (step int, b *bound) {
	for n := range bounds {
		if j, ok := p.made(i, v, bounds[n].class); ok {
			return j, &bounds[n]
		}
	}
	return 0, nil
}

// bound returns argument k of a clamping step, or none if it was omitted. The result is NaN for an
// unknown bound.
func (p *pass) bound(s *ir.Step, k int, none float64) float64 {
	if k == 0 {
		return max(none, 0)
	}
	if p.m.Values[s.Args[k]].Kind == tensor.None {
		return none
	}
	n, ok := p.number(s.Args[k])
	if !ok {
		return math.NaN()
	}
	return n
}

// stays reports whether definition d is still valid after step i.
func (p *pass) stays(d, i int) bool {
	def := &p.flow.Defs[d]
	return p.isUntouched(def) && (def.Next == ir.None || p.flow.Defs[def.Next].Step > i)
}

// fuse replaces steps, the last one first, by one call of op on x. All steps read the same
// definition of x, and it is still valid at the last one.
func (p *pass) fuse(op string, x, out int, steps ...int) bool {
	if p.m.Values[x].Tensor.Const {
		return false
	}
	for _, i := range steps {
		if slices.Contains(p.m.Steps[i].Reads, x) && !p.stays(p.definition(i, x), steps[0]) {
			return false
		}
	}
	if !p.call(steps[0], op, x, out, out) {
		return false
	}
	p.drop(steps[1:]...)
	p.record(0, steps[0])
	return true
}
