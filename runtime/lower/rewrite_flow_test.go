//go:build linux

package lower_test

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
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/pte"
)

// floats is a language of ATen operators on float32 tensors of 2×2×2 elements: the patterns of the
// rewrites, with and without hazards.
type floats struct {
	whole   bool // small integers only, for which a folded batch norm is exact
	scalars map[float32]int
	offset  int64 // of the next value in the arena
}

const cubeBytes = 32

func (l *floats) Value(*exectest.Flow) pte.Value {
	l.offset += 64
	return cube(l.offset - 64)
}

// cube returns a tensor at an offset of the arena.
func cube(offset int64) pte.Value {
	return pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: []int{2, 2, 2}, DimOrder: []uint8{0, 1, 2},
		Storage: pte.Planned, Offset: offset}}
}

// scalar adds a constant without dimensions.
func (l *floats) scalar(p *exectest.Flow, x float32) int {
	v, ok := l.scalars[x]
	if !ok {
		v = p.Constant([]float32{x})
		l.scalars[x] = v
	}
	return v
}

// compute generates one of the patterns. Sometimes a value inside it is read again, and sometimes
// something is overwritten in between.
func (l *floats) Compute(p *exectest.Flow, out int) {
	patterns := []func(p *exectest.Flow, out int){l.sum, l.sum, l.clamped, l.neutral, l.movement, l.movement, l.movement, l.movement}
	if l.whole {
		patterns = append(patterns, l.batchNorm, l.batchNorm, l.batchNorm)
	} else {
		patterns = append(patterns, l.silu, l.silu, l.hardswish, l.hardswish)
	}
	patterns[p.R.IntN(len(patterns))](p, out)
}

// between returns a value inside a pattern.
func (l *floats) between(p *exectest.Flow) int {
	v := p.Value()
	if p.R.IntN(12) == 0 {
		p.Defined = append(p.Defined, v)
	}
	return v
}

// disturb overwrites something, or reads the previous result.
func (l *floats) disturb(p *exectest.Flow, made int) {
	switch p.R.IntN(20) {
	case 3:
		if v := p.Defined[p.R.IntN(len(p.Defined))]; v != made {
			l.move(p, made, v)
		}
	case 0:
		l.Update(p, p.Defined[p.R.IntN(len(p.Defined))])
	case 1:
		v := p.Defined[p.R.IntN(len(p.Defined))]
		if v != made {
			p.CallNamed("aten::neg.out", made, v, v)
		}
	case 2:
		out := p.Value()
		p.CallNamed("aten::neg.out", made, out, out)
		p.Defined = append(p.Defined, out)
	}
}

func (l *floats) sum(p *exectest.Flow, out int) {
	v := l.between(p)
	p.CallNamed("aten::add.out", p.Pick(), p.Pick(), p.Number(1), v, v)
	l.bound(p, v, out)
}

func (l *floats) clamped(p *exectest.Flow, out int) { l.bound(p, p.Pick(), out) }

// bound keeps integers small.
func (l *floats) bound(p *exectest.Flow, v, out int) {
	p.CallNamed("aten::clamp.out", v, p.Number(-8), p.Number(8), out, out)
}

func (l *floats) neutral(p *exectest.Flow, out int) {
	one, x := l.scalar(p, float32(1+p.R.IntN(3)/2)), p.Pick()
	v := l.between(p)
	switch p.R.IntN(4) {
	case 0:
		p.CallNamed("aten::mul.out", x, one, v, v)
	case 1:
		p.CallNamed("aten::mul.out", one, x, v, v)
	case 2:
		p.CallNamed("aten::mul.Scalar_out", x, p.Number(1), v, v)
	default:
		p.CallNamed("aten::sub.out", x, l.scalar(p, 0), p.Number(1), v, v)
	}
	l.bound(p, v, out)
}

// movement moves elements once or twice.
func (l *floats) movement(p *exectest.Flow, out int) {
	x := p.Pick()
	if p.R.IntN(2) == 0 {
		v := l.between(p)
		l.move(p, x, v)
		l.disturb(p, v)
		x = v
	}
	l.move(p, x, out)
}

func (l *floats) move(p *exectest.Flow, x, out int) {
	switch p.R.IntN(6) {
	case 0:
		p.CallNamed("aten::expand_copy.out", x, p.Numbers(2, 2, 2), p.Truth(false), out, out)
	case 1:
		p.CallNamed("aten::alias_copy.out", x, out, out)
	case 2:
		p.CallNamed("aten::slice_copy.Tensor_out", x, p.Number(1), p.Number(0), p.Number(9), p.Number(1), out, out)
	case 3:
		p.CallNamed("aten::view_copy.out", x, p.Numbers(2, -1, 2), out, out)
	default:
		order := [...][]int64{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}[p.R.IntN(6)]
		p.CallNamed("aten::permute_copy.out", x, p.Numbers(order...), out, out)
	}
}

func (l *floats) silu(p *exectest.Flow, out int) {
	x := p.Pick()
	s := l.between(p)
	p.CallNamed("aten::sigmoid.out", x, s, s)
	l.disturb(p, s)
	if p.R.IntN(2) == 0 {
		x, s = s, x
	}
	p.CallNamed("aten::mul.out", x, s, out, out)
}

func (l *floats) hardswish(p *exectest.Flow, out int) {
	x := p.Pick()
	a, b, c, d := l.between(p), l.between(p), l.between(p), l.between(p)
	p.CallNamed("aten::add.out", x, l.scalar(p, 3), p.Number(1), a, a)
	p.CallNamed("aten::clamp.out", a, p.Number(0), p.Nothing(), b, b)
	l.disturb(p, b)
	p.CallNamed("aten::clamp.out", b, p.Nothing(), p.Number(6), c, c)
	p.CallNamed("aten::mul.out", x, c, d, d)
	l.disturb(p, d)
	p.CallNamed("aten::div.out", d, l.scalar(p, 6), out, out)
}

// batchNorm follows a convolution. All its factors are integers.
func (l *floats) batchNorm(p *exectest.Flow, out int) {
	few := func(n int) []float32 {
		list := make([]float32, n)
		for i := range list {
			list[i] = float32(p.R.IntN(3) - 1)
		}
		return list
	}
	y, z := l.between(p), l.between(p)
	bias := p.Nothing()
	if p.R.IntN(2) == 0 {
		bias = p.Constant(few(2), 2)
	}
	one, none := p.Numbers(1), p.Numbers(0)
	p.CallNamed("aten::convolution.out", p.Pick(), p.Constant(few(4), 2, 2, 1), bias, one, none, one, p.Truth(p.R.IntN(2) == 0), none, p.Number(1), y, y)
	l.disturb(p, y)
	empty := func() int {
		v := cube(l.offset)
		v.Tensor.Sizes, v.Tensor.DimOrder = []int{0}, []uint8{0}
		return p.Put(v)
	}
	mean, invStd := empty(), empty()
	list := p.Put(pte.Value{Kind: tensor.KindTensorList, Items: []int{z, mean, invStd}})
	p.CallNamed("aten::_native_batch_norm_legit_no_training.out", y, p.Constant(few(2), 2), p.Constant(few(2), 2), p.Constant(few(2), 2),
		p.Constant([]float32{1, 0.25}, 2), p.Number(0), p.Number(0), z, mean, invStd, list)
	l.bound(p, z, out)
}

// view adds an elided view, or one made by an instruction.
func (l *floats) View(p *exectest.Flow) {
	self := p.Defined[p.R.IntN(len(p.Defined))]
	out := p.Put(cube(p.M.Values[self].Tensor.Offset))
	if p.R.IntN(2) == 0 {
		p.CallNamed("executorch_prim::et_view.default", self, p.Numbers(2, 2, 2), out)
	}
	p.Defined = append(p.Defined, out)
}

func (l *floats) Update(p *exectest.Flow, self int) {
	if x := p.Pick(); x != self {
		p.CallNamed("aten::copy_", self, x, p.Truth(false), self)
	}
}

// rewriteProgram returns a random method of the language.
func rewriteProgram(seed uint64) *pte.Method {
	l := &floats{whole: seed%2 == 0, scalars: make(map[float32]int)}
	p := &exectest.Flow{Language: l, R: rand.New(rand.NewPCG(seed, 7))}
	m := p.Make()
	for range p.R.IntN(8) {
		m.Outputs = append(m.Outputs, p.Pick())
	}
	m.Name, m.Arenas = "forward", []pte.Arena{{Size: l.offset + cubeBytes}}
	return m
}

// loadFloats loads a method of ATen operators, which may read state that nothing writes.
func loadFloats(spec *pte.Method, rewrite bool) (*exectest.Method, error) {
	return exectest.Load(spec, 1<<20, prepare.Options{Operators: kernels.NewSet(portable.Ops()), Rewrite: rewrite, AsWritten: true,
		Plan: plan.Options{Preserve: true}})
}

// checkRewritten is compareLowered of a random program.
func checkRewritten(seed uint64, counts map[string]int) error {
	return compareLowered(rewriteProgram(seed), seed, counts)
}

// compareLowered runs a method with and without rewrites. It counts the rewrites by name, and
// methods without any as none.
func compareLowered(spec *pte.Method, seed uint64, counts map[string]int) error {
	want, err := loadFloats(spec, false)
	if err != nil {
		return nil // an out shares its bytes with an operand
	}
	got, err := loadFloats(spec, true)
	if err != nil {
		return &campaign.Finding{Kind: "load", Message: err.Error()}
	}
	for _, w := range got.Prepared.Rewritten {
		counts[w.Rewrite]++
	}
	counts[""]++
	got.Poison(0xAA)
	for run := range 3 {
		for _, m := range []*exectest.Method{want, got} {
			setCubes(m, seed, run)
			if err := m.Execute(context.Background()); err != nil {
				return &campaign.Finding{Kind: "execute", Message: fmt.Sprintf("run %d: %v\n%s", run, err, m.Listing())}
			}
		}
		for i := range spec.Outputs {
			if a, b := got.Tensor(i).Data, want.Tensor(i).Data; !sameFloats(a, b) {
				return &campaign.Finding{Kind: "difference", Message: fmt.Sprintf("run %d, output %d (value %d): got %v, want %v\n%s\nreference:\n%s",
					run, i, spec.Outputs[i], tensor.View[float32](a), tensor.View[float32](b), got.Listing(), want.Listing())}
			}
		}
	}
	return nil
}

// sameFloats treats zeros of either sign as equal, and all NaNs.
func sameFloats(a, b []byte) bool {
	return bytes.Equal(a, b) || slices.EqualFunc(tensor.View[float32](a), tensor.View[float32](b), func(x, y float32) bool { return x == y || x != x && y != y })
}

func setCubes(m *exectest.Method, seed uint64, run int) {
	r := rand.New(rand.NewPCG(seed, uint64(run)))
	for i := range m.NumInputs() {
		x := m.Input(i)
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
