//go:build linux

package etrun

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// floats is a language of ATen operators on float32 tensors of 2×2×2 elements: the patterns of the
// rewrites, with and without hazards.
type floats struct {
	whole   bool // small integers only, for which a folded batch norm is exact
	ops     map[string]int
	scalars map[float32]int
	offset  int64 // of the next value in the arena
}

const cubeBytes = 32

func (l *floats) value(*flowProgram) pte.Value {
	l.offset += 64
	return cube(l.offset - 64)
}

// cube returns a tensor at an offset of the arena.
func cube(offset int64) pte.Value {
	return pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: []int{2, 2, 2}, DimOrder: []uint8{0, 1, 2},
		Storage: pte.Planned, Offset: offset}}
}

// do calls an operator by name.
func (l *floats) do(p *flowProgram, name string, args ...int) {
	at, ok := l.ops[name]
	if !ok {
		at = len(p.m.Operators)
		l.ops[name] = at
		p.m.Operators = append(p.m.Operators, pte.Operator{Name: name})
	}
	p.call(at, args...)
}

// scalar adds a constant without dimensions.
func (l *floats) scalar(p *flowProgram, x float32) int {
	v, ok := l.scalars[x]
	if !ok {
		v = p.constant([]float32{x})
		l.scalars[x] = v
	}
	return v
}

// compute generates one of the patterns. Sometimes a value inside it is read again, and sometimes
// something is overwritten in between.
func (l *floats) compute(p *flowProgram, out int) {
	patterns := []func(p *flowProgram, out int){l.sum, l.sum, l.clamped, l.neutral, l.movement, l.movement, l.movement, l.movement}
	if l.whole {
		patterns = append(patterns, l.batchNorm, l.batchNorm, l.batchNorm)
	} else {
		patterns = append(patterns, l.silu, l.silu, l.hardswish, l.hardswish)
	}
	patterns[p.r.IntN(len(patterns))](p, out)
}

// between returns a value inside a pattern.
func (l *floats) between(p *flowProgram) int {
	v := p.value()
	if p.r.IntN(12) == 0 {
		p.defined = append(p.defined, v)
	}
	return v
}

// disturb overwrites something, or reads the previous result.
func (l *floats) disturb(p *flowProgram, made int) {
	switch p.r.IntN(20) {
	case 3:
		if v := p.defined[p.r.IntN(len(p.defined))]; v != made {
			l.move(p, made, v)
		}
	case 0:
		l.update(p, p.defined[p.r.IntN(len(p.defined))])
	case 1:
		v := p.defined[p.r.IntN(len(p.defined))]
		if v != made {
			l.do(p, "aten::neg.out", made, v, v)
		}
	case 2:
		out := p.value()
		l.do(p, "aten::neg.out", made, out, out)
		p.defined = append(p.defined, out)
	}
}

func (l *floats) sum(p *flowProgram, out int) {
	v := l.between(p)
	l.do(p, "aten::add.out", p.pick(), p.pick(), p.number(1), v, v)
	l.bound(p, v, out)
}

func (l *floats) clamped(p *flowProgram, out int) { l.bound(p, p.pick(), out) }

// bound keeps integers small.
func (l *floats) bound(p *flowProgram, v, out int) {
	l.do(p, "aten::clamp.out", v, p.number(-8), p.number(8), out, out)
}

func (l *floats) neutral(p *flowProgram, out int) {
	one, x := l.scalar(p, float32(1+p.r.IntN(3)/2)), p.pick()
	v := l.between(p)
	switch p.r.IntN(4) {
	case 0:
		l.do(p, "aten::mul.out", x, one, v, v)
	case 1:
		l.do(p, "aten::mul.out", one, x, v, v)
	case 2:
		l.do(p, "aten::mul.Scalar_out", x, p.number(1), v, v)
	default:
		l.do(p, "aten::sub.out", x, l.scalar(p, 0), p.number(1), v, v)
	}
	l.bound(p, v, out)
}

// movement moves elements once or twice.
func (l *floats) movement(p *flowProgram, out int) {
	x := p.pick()
	if p.r.IntN(2) == 0 {
		v := l.between(p)
		l.move(p, x, v)
		l.disturb(p, v)
		x = v
	}
	l.move(p, x, out)
}

func (l *floats) move(p *flowProgram, x, out int) {
	switch p.r.IntN(6) {
	case 0:
		l.do(p, "aten::expand_copy.out", x, p.numbers(2, 2, 2), p.truth(false), out, out)
	case 1:
		l.do(p, "aten::alias_copy.out", x, out, out)
	case 2:
		l.do(p, "aten::slice_copy.Tensor_out", x, p.number(1), p.number(0), p.number(9), p.number(1), out, out)
	case 3:
		l.do(p, "aten::view_copy.out", x, p.numbers(2, -1, 2), out, out)
	default:
		order := [...][]int64{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}[p.r.IntN(6)]
		l.do(p, "aten::permute_copy.out", x, p.numbers(order...), out, out)
	}
}

func (l *floats) silu(p *flowProgram, out int) {
	x := p.pick()
	s := l.between(p)
	l.do(p, "aten::sigmoid.out", x, s, s)
	l.disturb(p, s)
	if p.r.IntN(2) == 0 {
		x, s = s, x
	}
	l.do(p, "aten::mul.out", x, s, out, out)
}

func (l *floats) hardswish(p *flowProgram, out int) {
	x := p.pick()
	a, b, c, d := l.between(p), l.between(p), l.between(p), l.between(p)
	l.do(p, "aten::add.out", x, l.scalar(p, 3), p.number(1), a, a)
	l.do(p, "aten::clamp.out", a, p.number(0), p.nothing(), b, b)
	l.disturb(p, b)
	l.do(p, "aten::clamp.out", b, p.nothing(), p.number(6), c, c)
	l.do(p, "aten::mul.out", x, c, d, d)
	l.disturb(p, d)
	l.do(p, "aten::div.out", d, l.scalar(p, 6), out, out)
}

// batchNorm follows a convolution. All its factors are integers.
func (l *floats) batchNorm(p *flowProgram, out int) {
	few := func(n int) []float32 {
		list := make([]float32, n)
		for i := range list {
			list[i] = float32(p.r.IntN(3) - 1)
		}
		return list
	}
	y, z := l.between(p), l.between(p)
	bias := p.nothing()
	if p.r.IntN(2) == 0 {
		bias = p.constant(few(2), 2)
	}
	one, none := p.numbers(1), p.numbers(0)
	l.do(p, "aten::convolution.out", p.pick(), p.constant(few(4), 2, 2, 1), bias, one, none, one, p.truth(p.r.IntN(2) == 0), none, p.number(1), y, y)
	l.disturb(p, y)
	empty := func() int {
		v := cube(l.offset)
		v.Tensor.Sizes, v.Tensor.DimOrder = []int{0}, []uint8{0}
		return p.put(v)
	}
	mean, invStd := empty(), empty()
	list := p.put(pte.Value{Kind: tensor.KindTensorList, Items: []int{z, mean, invStd}})
	l.do(p, "aten::_native_batch_norm_legit_no_training.out", y, p.constant(few(2), 2), p.constant(few(2), 2), p.constant(few(2), 2),
		p.constant([]float32{1, 0.25}, 2), p.number(0), p.number(0), z, mean, invStd, list)
	l.bound(p, z, out)
}

// view adds an elided view, or one made by an instruction.
func (l *floats) view(p *flowProgram) {
	self := p.defined[p.r.IntN(len(p.defined))]
	out := p.put(cube(p.m.Values[self].Tensor.Offset))
	if p.r.IntN(2) == 0 {
		l.do(p, "executorch_prim::et_view.default", self, p.numbers(2, 2, 2), out)
	}
	p.defined = append(p.defined, out)
}

func (l *floats) update(p *flowProgram, self int) {
	if x := p.pick(); x != self {
		l.do(p, "aten::copy_", self, x, p.truth(false), self)
	}
}

// rewriteProgram returns a random method of the language.
func rewriteProgram(seed uint64) *pte.Method {
	l := &floats{whole: seed%2 == 0, ops: make(map[string]int), scalars: make(map[float32]int)}
	p := &flowProgram{language: l, r: rand.New(rand.NewPCG(seed, 7))}
	m := p.make()
	for range p.r.IntN(8) {
		m.Outputs = append(m.Outputs, p.pick())
	}
	m.Name, m.Arenas = "forward", []pte.Arena{{Size: l.offset + cubeBytes}}
	return m
}

// loadFloats loads a method of ATen operators, which may read state that nothing writes.
func loadFloats(spec *pte.Method, lowering Lowering) (*Method, error) {
	p := &Program{config: newConfig([]Option{WithOperatorSet(kernels.NewSet(portable.Ops())), WithThreads(1), WithLowering(lowering),
		WithoutRepair()}),
		spec: &pte.Program{Methods: []pte.Method{*spec}}}
	p.makeSlots()
	setFoldBudget(p, 1<<20)
	return p.Load(context.Background(), "")
}

// checkRewritten is compareLowered of a random program.
func checkRewritten(seed uint64, counts map[string]int) error {
	return compareLowered(rewriteProgram(seed), seed, counts)
}

// compareLowered runs a method with and without rewrites. It counts the rewrites by name, and
// methods without any as none.
func compareLowered(spec *pte.Method, seed uint64, counts map[string]int) error {
	want, err := loadFloats(spec, LowerOff)
	if err != nil {
		return nil // an out shares its bytes with an operand
	}
	got, err := loadFloats(spec, LowerAuto)
	if err != nil {
		return &campaign.Finding{Kind: "load", Message: err.Error()}
	}
	for _, w := range got.Report().Rewritten {
		counts[w.Rewrite]++
	}
	counts[""]++
	poisonDead(got.in, 0xAA)
	for run := range 3 {
		for _, m := range []*Method{want, got} {
			setCubes(m, seed, run)
			if err := m.Execute(context.Background()); err != nil {
				return &campaign.Finding{Kind: "execute", Message: fmt.Sprintf("run %d: %v\n%s", run, err, listing(m.in))}
			}
		}
		for i := range spec.Outputs {
			if a, b := outputTensor(got, i).Data, outputTensor(want, i).Data; !sameFloats(a, b) {
				return &campaign.Finding{Kind: "difference", Message: fmt.Sprintf("run %d, output %d (value %d): got %v, want %v\n%s\nreference:\n%s",
					run, i, spec.Outputs[i], tensor.View[float32](a), tensor.View[float32](b), listing(got.in), listing(want.in))}
			}
		}
	}
	return nil
}

// sameFloats treats zeros of either sign as equal, and all NaNs.
func sameFloats(a, b []byte) bool {
	return bytes.Equal(a, b) || slices.EqualFunc(tensor.View[float32](a), tensor.View[float32](b), func(x, y float32) bool { return x == y || x != x && y != y })
}

func setCubes(m *Method, seed uint64, run int) {
	r := rand.New(rand.NewPCG(seed, uint64(run)))
	for i, in := range m.Meta().Inputs {
		x := in.NewTensor()
		if x.DType == tensor.Bool {
			x.Data[0] = byte(r.IntN(2))
		} else {
			for k, list := 0, tensor.Data[float32](x); k < len(list); k++ {
				list[k] = float32(r.IntN(17) - 8)
			}
		}
		if err := m.SetInput(i, x); err != nil {
			panic(err)
		}
	}
}

// TestRewrittenExecutionEqualsOriginal compares random programs with and without rewrites.
func TestRewrittenExecutionEqualsOriginal(t *testing.T) {
	counts := make(map[string]int)
	programs := uint64(600)
	if testing.Short() {
		programs = 200
	}
	for seed := range programs {
		if err := checkRewritten(seed, counts); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	t.Log(counts)
	for _, name := range []string{"", "identity", "neutral", "permutations", "dead", "batch norm", "silu", "hardswish"} {
		if uint64(counts[name]) < programs/10 {
			t.Errorf("%d of %q in %d programs: the test shows little", counts[name], name, programs)
		}
	}
}

// TestRewrites is the same as a campaign.
func TestRewrites(t *testing.T) {
	c := &campaign.Campaign{Test: "TestRewrites", Usual: 200, Memory: 256 << 20, Counters: []string{"programs", "rewritten instructions"},
		Start: func(_ *testing.T, p *campaign.Process) func(seed uint64) error {
			return func(seed uint64) error {
				counts := make(map[string]int)
				err := checkRewritten(seed, counts)
				n := -1
				for _, count := range counts {
					n += count
				}
				p.Count(0, 1)
				p.Count(1, max(n, 0))
				return err
			}
		}}
	c.Run(t)
}
