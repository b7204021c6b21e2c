package etrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/delegatetest"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// mixOps are the further operators of programs that are lowered: several outs, lists,
// numbers, sizes that vary, and draws of random numbers.
var mixOps = []kernels.Op{
	{Pure: true, Schema: "test::both.out(Tensor a, *, Tensor(a!) x, Tensor(b!) y)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		for i, v := range words(a, 0) {
			words(a, 1)[i], words(a, 2)[i] = v+7, v^5
		}
		return nil
	}},
	{Pure: true, Schema: "test::join.out(Tensor[] list, *, Tensor(a!) out)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		out := words(a, 1)
		clear(out)
		for n, t := range a.Tensors(0) {
			for i, v := range tensor.Data[int64](t) {
				out[i] += int64(n+2) * v
			}
		}
		return nil
	}},
	{Pure: true, Schema: "test::parts.out(Tensor self, *, Tensor(a!)[] out)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		for n, t := range a.Tensors(1) {
			for i, v := range words(a, 0) {
				tensor.Data[int64](t)[i] = v*3 + int64(n)
			}
		}
		return nil
	}},
	{Pure: true, Schema: "test::scale.out(Tensor self, Scalar s, *, Tensor(a!) out)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		for i, v := range words(a, 0) {
			words(a, 2)[i] = v * (a.Scalar(1).I%7 + 2)
		}
		return nil
	}},
	{Pure: true, Schema: "test::number(Tensor self) -> Scalar", Func: flowOps[flowNumber].Func},
	{Random: true, Schema: "test::draw.out(*, Tensor(a!) out)", Func: func(c *kernels.Ctx, a kernels.Args) error {
		for i := range words(a, 0) {
			words(a, 0)[i] = c.Rand.Int64N(1000)
		}
		return nil
	}},
	{Pure: true, Schema: "test::grown.out(Tensor a, Tensor b, *, Tensor(a!) out)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		if err := kernels.ResizeOut(a, 2, a.Tensor(0).Sizes); err != nil {
			return err
		}
		for i, v := range words(a, 0) {
			words(a, 2)[i] = 2*v + words(a, 1)[i%len(words(a, 1))]
		}
		return nil
	}},
	{Pure: true, Schema: "test::half.out(Tensor a, *, Tensor(a!) out)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		n := (a.Tensor(0).Numel() + 1) / 2
		if err := kernels.ResizeOut(a, 1, []int{n}); err != nil {
			return err
		}
		copy(words(a, 1), words(a, 0))
		return nil
	}},
	{Pure: true, Schema: "test::total.out(Tensor self, *, Tensor(a!) out)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		for i := range words(a, 1) {
			words(a, 1)[i] = int64(a.Tensor(0).Numel() + i)
			for _, v := range words(a, 0) {
				words(a, 1)[i] += v
			}
		}
		return nil
	}},
	{Pure: true, Schema: "test::bump_(Tensor(a!) self, Tensor src)", Func: flowOps[flowUpdate].Func},
}

const (
	mixBoth = iota + 3 // behind the operators of flowProgram
	mixJoin
	mixParts
	mixScale
	mixNumber
	mixDraw
	mixGrown
	mixHalf
	mixTotal
	mixBump
	mixView // executorch_prim::et_view
)

// mix makes programs of all that regions must respect.
type mix struct {
	flowProgram
	offset int64 // of the next planned value
	sizes  int   // the size list of views, -1
	owned  []int // values that only rewrite uses: an input that the program overwrites, and others
}

func newMix(r *rand.Rand) *pte.Method {
	p := &mix{flowProgram: flowProgram{language: wordsOnly{}, r: r}}
	p.m.Operators = []pte.Operator{{Name: "test::add", Overload: "out"}, {Name: "test::update_"}, {Name: "test::view"}}
	p.begin()
	p.more = p.statement
	m := p.make(constantVector(r), constantVector(r))
	for range r.IntN(3) {
		m.Outputs = append(m.Outputs, m.Outputs[r.IntN(len(m.Outputs))])
	}
	if n := len(p.dynamic); n > 0 {
		m.Outputs = append(m.Outputs, p.dynamic[n-1])
	}
	m.Name = "forward"
	return m
}

// begin adds the operators, and the input whose size varies.
func (p *mix) begin() {
	for i := range mixOps {
		name, overload := splitName(mixOps[i].Name())
		p.m.Operators = append(p.m.Operators, pte.Operator{Name: name, Overload: overload})
	}
	p.m.Operators = append(p.m.Operators, pte.Operator{Name: "executorch_prim::et_view", Overload: "default"})
	in, overwritten := p.grown(), p.value()
	p.m.Inputs, p.dynamic, p.owned = append(p.m.Inputs, in, overwritten), append(p.dynamic, in), append(p.owned, overwritten)
	p.m.Values = append(p.m.Values, pte.Value{Kind: tensor.KindInt, Int: -1})
	p.m.Values = append(p.m.Values, pte.Value{Kind: tensor.KindIntList, Items: []int{len(p.m.Values) - 1}})
	p.sizes = len(p.m.Values) - 1
}

func splitName(full string) (name, overload string) {
	if at := bytes.LastIndexByte([]byte(full), '.'); at >= 0 {
		return full[:at], full[at+1:]
	}
	return full, ""
}

// grown is a value whose size varies.
func (p *mix) grown() int {
	v := p.value()
	p.m.Values[v].Tensor.Dynamism = tensor.DynamicBound
	return v
}

func (p *mix) list(items ...int) int {
	p.m.Values = append(p.m.Values, pte.Value{Kind: tensor.KindTensorList, Items: items})
	return len(p.m.Values) - 1
}

func (p *mix) anyDynamic() int { return p.dynamic[p.r.IntN(len(p.dynamic))] }

// statement writes one of the further statements, two times of three.
func (p *mix) statement(depth int) bool {
	if depth > 0 && p.r.IntN(8) == 0 {
		p.loop(depth - 1)
		return true
	}
	kinds := [...]func(){p.both, p.join, p.parts, p.scale, p.draw, p.bump, p.again, p.rewrite, p.rewrite,
		p.elided, p.elided, p.copied, p.grow, p.grow, p.reshape, p.half, p.stale, p.total}
	if p.r.IntN(3) == 0 {
		return false
	}
	kinds[p.r.IntN(len(kinds))]()
	return true
}

func (p *mix) both() {
	x, y := p.value(), p.value()
	p.call(mixBoth, p.pick(), x, y, p.list(x, y))
	p.defined = append(p.defined, x, y)
}

func (p *mix) join() {
	out := p.value()
	p.call(mixJoin, p.list(p.pick(), p.pick(), p.pick()), out, out)
	p.defined = append(p.defined, out)
}

func (p *mix) parts() {
	x, y := p.value(), p.value()
	l := p.list(x, y)
	p.call(mixParts, p.pick(), l, l)
	p.defined = append(p.defined, x, y)
}

// scale multiplies by a number that the program has, or computes.
func (p *mix) scale() {
	p.m.Values = append(p.m.Values, pte.Value{Kind: tensor.KindInt, Int: p.r.Int64N(9)})
	n := len(p.m.Values) - 1
	if p.r.IntN(3) == 0 {
		p.call(mixNumber, p.pick(), n)
	}
	for range 1 + p.r.IntN(2) {
		out := p.value()
		p.call(mixScale, p.pick(), n, out, out)
		p.defined = append(p.defined, out)
	}
}

// draw writes random numbers to a value that was read before.
func (p *mix) draw() {
	v, out := p.value(), p.value()
	p.call(flowAdd, p.pick(), p.pick(), v, v)
	p.call(flowAdd, v, p.pick(), out, out)
	p.call(mixDraw, v, v)
	fresh := p.value()
	p.call(mixDraw, fresh, fresh)
	p.defined = append(p.defined, v, out, fresh)
}

// bump changes a value in place.
func (p *mix) bump() {
	v := p.defined[p.r.IntN(len(p.defined))]
	p.call(mixBump, v, p.pick(), v)
}

// rewrite reads a value, writes it, or both: what a loop finds there the next time, or the
// next execute where nothing was written before.
func (p *mix) rewrite() {
	if len(p.owned) < 3 {
		v := p.value()
		p.call(flowAdd, p.pick(), p.pick(), v, v)
		p.owned = append(p.owned, v)
		return
	}
	v, do := p.owned[p.r.IntN(len(p.owned))], p.r.IntN(3)
	if do != 0 {
		out := p.value()
		p.call(flowAdd, v, p.pick(), out, out)
		p.defined = append(p.defined, out)
	}
	if do != 1 {
		p.call(flowAdd, p.pick(), p.pick(), v, v)
	}
}

// again writes a value that was written before, and may be read in between.
func (p *mix) again() {
	v := p.value()
	p.call(flowAdd, p.pick(), p.pick(), v, v)
	for range 1 + p.r.IntN(2) {
		out := p.value()
		p.call(flowAdd, v, p.pick(), out, out)
		p.defined = append(p.defined, out)
	}
	p.call(flowAdd, p.pick(), p.pick(), v, v)
	p.defined = append(p.defined, v)
}

// elided is a value that the exporter gave the place of another one.
func (p *mix) elided() {
	v, view := p.value(), p.value()
	for _, v := range []int{v, view} {
		t := p.m.Values[v].Tensor
		t.Storage, t.Offset = pte.Planned, p.offset
	}
	if len(p.m.Arenas) == 0 {
		p.m.Arenas = []pte.Arena{{Size: 1 << 20}}
	}
	p.offset += 64
	p.call(flowAdd, p.pick(), p.pick(), v, v)
	out := p.value()
	p.call(flowAdd, view, p.pick(), out, out)
	p.defined = append(p.defined, v, view, out)
}

func (p *mix) copied() {
	to := p.value()
	p.add(pte.Instruction{Kind: pte.MoveCall, Index: p.pick(), Target: to})
	p.defined = append(p.defined, to)
}

func (p *mix) grow() {
	out := p.grown()
	p.call(mixGrown, p.anyDynamic(), p.anyDynamic(), out, out)
	p.dynamic = append(p.dynamic, out)
}

func (p *mix) reshape() {
	out := p.grown()
	p.call(mixView, p.anyDynamic(), p.sizes, out)
	p.dynamic = append(p.dynamic, out)
}

func (p *mix) half() {
	out := p.grown()
	p.call(mixHalf, p.anyDynamic(), out, out)
	p.dynamic = append(p.dynamic, out)
}

// stale reads a view whose size is that of what its bytes held before.
func (p *mix) stale() {
	v, view, out := p.grown(), p.grown(), p.grown()
	p.call(mixGrown, p.anyDynamic(), p.anyDynamic(), v, v)
	p.call(mixView, v, p.sizes, view)
	p.call(mixHalf, p.anyDynamic(), v, v)
	p.call(mixGrown, view, p.anyDynamic(), out, out)
	p.dynamic = append(p.dynamic, out, v)
}

func (p *mix) total() {
	out := p.value()
	p.call(mixTotal, p.anyDynamic(), out, out)
	p.defined = append(p.defined, out)
}

// mixSet is the operators of the programs.
func mixSet() *kernels.Set {
	view, _, _, _ := kernels.NewSet(portable.Ops()).Lookup("executorch_prim::et_view.default")
	return kernels.NewSet(flowOps, mixOps, []kernels.Op{*view})
}

// mask takes calls, and compiles graphs, at random but always the same: share of 10 of
// the calls, and three of four regions where hard.
func mask(seed uint64, share uint64, hard bool) delegatetest.Oracle {
	chance := func(text string) uint64 {
		h := fnv.New64a()
		fmt.Fprint(h, seed, text)
		return h.Sum64() >> 11
	}
	return delegatetest.Oracle{Poison: 0xAA,
		Accept: func(g *delegate.Graph, i int) string {
			c := &g.Calls[i]
			if chance(c.Place)%10 >= share {
				return "by chance"
			}
			if hard && len(g.Readers(g.Writes(nil, i)[0])) == 0 && chance(c.Place+"!")%3 == 0 {
				return "nobody in the region reads it"
			}
			return ""
		},
		Refuse: func(g *delegate.Graph) error {
			if hard && chance(g.Calls[0].Place+"?")%4 == 0 {
				return errors.New("by chance")
			}
			return nil
		}}
}

// lowerMix lowers a random program by an oracle, and executes it beside the original.
func lowerMix(seed uint64) (regions int, err error) {
	r := rand.New(rand.NewPCG(seed, 5))
	spec := newMix(r)
	share, hard := []uint64{10, 9, 6, 3}[r.IntN(4)], r.IntN(2) == 0
	load := func(options ...Option) (*Method, error) {
		options = append(options, WithOperatorSet(mixSet()), WithPlan(PlanOwn))
		if r.IntN(2) == 0 {
			options = append(options, WithReusableInputs())
		}
		p := flowMethods([]pte.Method{*spec}, options...)
		return p.Load(context.Background(), "")
	}
	reference, err := load(WithLowering(LowerOff))
	if err != nil {
		return 0, err
	}
	m, err := load(WithLowering(LowerAuto), WithMinProfit(-1), WithDelegates(mask(seed, share, hard)))
	if err != nil {
		return 0, fmt.Errorf("lowered: %w\n%s", err, listing(reference))
	}
	poisonDead(m, 0xAA)
	poisonDead(reference, 0x55)
	for run := range 5 {
		if err := compareMix(m, reference, run); err != nil {
			return 0, fmt.Errorf("run %d, %w\n%s\nreference:\n%s", run, err, listing(m), listing(reference))
		}
	}
	return m.lowered.Taken(), nil
}

func compareMix(m, reference *Method, run int) error {
	for _, m := range []*Method{reference, m} {
		if err := setMixInputs(m, run); err != nil {
			return err
		}
		if err := m.Execute(context.Background()); err != nil {
			return err
		}
	}
	for i, v := range reference.ir.Outputs {
		got, want := outputTensor(m, i), outputTensor(reference, i)
		if !slices.Equal(got.Sizes, want.Sizes) || !bytes.Equal(got.Data, want.Data) {
			return fmt.Errorf("output %d (value %d): got %v %v, want %v %v", i, v,
				got.Sizes, tensor.Data[int64](got), want.Sizes, tensor.Data[int64](want))
		}
	}
	return nil
}

// setMixInputs gives inputs of random elements, and a size that changes with each run.
func setMixInputs(m *Method, run int) error {
	r := rand.New(rand.NewPCG(uint64(run), 6))
	for i, in := range m.Meta().Inputs {
		sizes := in.Sizes
		if in.Dynamism != tensor.Static {
			sizes = []int{1 + (run+2)%flowLen}
		}
		x := tensor.New(in.DType, sizes...)
		if x.DType == tensor.Bool {
			x.Data[0] = byte(r.IntN(2))
		} else {
			for k := range tensor.Data[int64](x) {
				tensor.Data[int64](x)[k] = r.Int64N(100)
			}
		}
		if err := m.SetInput(i, x); err != nil {
			return err
		}
	}
	return nil
}

// TestLoweredExecutionEqualsOriginal lowers random programs with every kind of sharing,
// at random, and whatever it costs.
func TestLoweredExecutionEqualsOriginal(t *testing.T) {
	regions, merged := 0, 0
	for seed := range uint64(lowerSeeds) {
		n, err := lowerMix(seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if regions += n; n > 0 {
			merged++
		}
	}
	if merged < lowerSeeds/2 {
		t.Errorf("only %d of %d programs have regions, %d in all: the test shows nothing", merged, lowerSeeds, regions)
	}
	t.Logf("%d regions in %d of %d programs", regions, merged, lowerSeeds)
}

const lowerSeeds = 1000

// With LowerVerify a method compares itself with what it would be otherwise.
func TestVerifyLowering(t *testing.T) {
	spec := newMix(rand.New(rand.NewPCG(4, 5)))
	wrong := mask(1, 10, false)
	load := func(by delegate.Backend) *Method {
		p := flowMethods([]pte.Method{*spec}, WithOperatorSet(mixSet()), WithLowering(LowerVerify), WithMinProfit(-1), WithDelegates(by))
		m, err := p.Load(context.Background(), "")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for name, by := range map[string]struct {
		delegate.Backend
		differs bool
	}{"right": {wrong, false}, "wrong": {liar{wrong}, true}} {
		m := load(by.Backend)
		for run := range 3 {
			if err := errors.Join(setMixInputs(m, run), m.Execute(context.Background())); err != nil {
				t.Fatal(err)
			}
			differs := false
			for i, d := range m.Distances() {
				if differs = differs || d.Absolute != 0; d.Output != i {
					t.Errorf("%s, run %d: %d distances, number %d of output %d", name, run, len(m.Distances()), i, d.Output)
				}
			}
			if m.lowered.Taken() == 0 || differs != by.differs || len(m.Distances()) != len(spec.Outputs) {
				t.Errorf("%s, run %d: %d regions, distances %v", name, run, m.lowered.Taken(), m.Distances())
			}
		}
		if err := errors.Join(m.Reset(), m.Close()); err != nil {
			t.Error(err)
		}
	}
}

// liar is an oracle whose regions add one to their outputs.
type liar struct{ delegatetest.Oracle }

func (l liar) CompileGraph(ctx context.Context, g *delegate.Graph, limits delegate.Limits) (delegate.Image, error) {
	img, err := l.Oracle.CompileGraph(ctx, g, limits)
	return lyingImage{img, len(g.Inputs)}, err
}

type lyingImage struct {
	delegate.Image
	output int
}

func (m lyingImage) Unit(in delegate.Instance) (delegate.Unit, error) {
	u, err := m.Image.Unit(in)
	return lyingUnit{u, m.output}, err
}

type lyingUnit struct {
	delegate.Unit
	output int
}

func (u lyingUnit) Execute(ctx context.Context, args []*tensor.Value) error {
	err := u.Unit.Execute(ctx, args)
	for _, a := range args[u.output:] {
		tensor.Data[int64](a.Tensor)[0]++
	}
	return err
}

// TestLoweringThatFails loads where regions do not compile, would not fit, or are given up
// halfway: the method runs as it is, or after another attempt.
func TestLoweringThatFails(t *testing.T) {
	spec := newMix(rand.New(rand.NewPCG(1, 5)))
	ctx, cancel := context.WithCancel(context.Background())
	compiled, fails := 0, false
	by := mask(1, 6, false)
	by.Refuse = func(*delegate.Graph) error {
		switch compiled++; {
		case fails:
			return errors.New("no")
		case compiled == 3:
			cancel()
		}
		return nil
	}
	p := flowMethods([]pte.Method{*spec}, WithOperatorSet(mixSet()), WithLowering(LowerAuto), WithMinProfit(-1), WithDelegates(by))
	if _, err := p.Load(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v after %d graphs", err, compiled)
	}
	m, err := p.Load(context.Background(), "")
	if err != nil || m.lowered.Taken() < 3 || len(m.images) != m.lowered.Taken() {
		t.Fatalf("second attempt: %v", err)
	}
	fails = true
	q := flowMethods([]pte.Method{*spec}, WithOperatorSet(mixSet()), WithLowering(LowerAuto), WithMinProfit(-1), WithDelegates(by))
	plain, err := q.Load(context.Background(), "")
	if err != nil || plain.lowered.Taken() != 0 || len(plain.images) != 0 {
		t.Fatalf("nothing compiles: %v", err)
	}
	for run := range 3 {
		if err := compareMix(m, plain, run); err != nil {
			t.Error(err)
		}
	}
	checkNoRoom(t, spec, plain.plan.Bytes())
}

// checkNoRoom lowers a method where its regions' working memory does not fit any more.
func checkNoRoom(t *testing.T, spec *pte.Method, plain int64) {
	t.Helper()
	dropped := 0
	for limit := plain; limit < plain+256; limit += 16 {
		p := flowMethods([]pte.Method{*spec}, WithOperatorSet(mixSet()), WithLowering(LowerAuto), WithMinProfit(-1),
			WithDelegates(mask(1, 6, false)), WithLimits(Limits{PlannedBytes: limit}))
		m, err := p.Load(context.Background(), "")
		if err != nil {
			t.Fatalf("%d bytes, of which %d without lowering: %v", limit, plain, err)
		}
		if m.lowered.Taken() < len(m.lowered.Regions) {
			dropped++
		}
	}
	if dropped == 0 {
		t.Error("all regions fit in what the method takes without them: the test shows nothing")
	}
}
