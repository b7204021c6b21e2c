package compile_test

import (
	"math/rand/v2"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
)

// mixOps are the additional operators of lowered programs: several outs, lists, numbers, dynamic
// sizes, and random numbers.
var mixOps = []kernels.Op{
	{Pure: true, Schema: "test::both.out(Tensor a, *, Tensor(a!) x, Tensor(b!) y)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		for i, v := range exectest.WordsOf(a, 0) {
			exectest.WordsOf(a, 1)[i], exectest.WordsOf(a, 2)[i] = v+7, v^5
		}
		return nil
	}},
	{Pure: true, Schema: "test::join.out(Tensor[] list, *, Tensor(a!) out)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		out := exectest.WordsOf(a, 1)
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
			for i, v := range exectest.WordsOf(a, 0) {
				tensor.Data[int64](t)[i] = v*3 + int64(n)
			}
		}
		return nil
	}},
	{Pure: true, Schema: "test::scale.out(Tensor self, Scalar s, *, Tensor(a!) out)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		for i, v := range exectest.WordsOf(a, 0) {
			exectest.WordsOf(a, 2)[i] = v * (a.Scalar(1).I%7 + 2)
		}
		return nil
	}},
	{Pure: true, Schema: "test::number(Tensor self) -> Scalar", Func: exectest.WordOps[exectest.OpNumber].Func},
	{Random: true, Schema: "test::draw.out(*, Tensor(a!) out)", Func: func(c *kernels.Ctx, a kernels.Args) error {
		for i := range exectest.WordsOf(a, 0) {
			exectest.WordsOf(a, 0)[i] = c.Rand.Int64N(1000)
		}
		return nil
	}},
	{Pure: true, Schema: "test::grown.out(Tensor a, Tensor b, *, Tensor(a!) out)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		if err := kernels.ResizeOut(a, 2, a.Tensor(0).Sizes); err != nil {
			return err
		}
		for i, v := range exectest.WordsOf(a, 0) {
			exectest.WordsOf(a, 2)[i] = 2*v + exectest.WordsOf(a, 1)[i%len(exectest.WordsOf(a, 1))]
		}
		return nil
	}},
	{Pure: true, Schema: "test::half.out(Tensor a, *, Tensor(a!) out)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		n := (a.Tensor(0).Numel() + 1) / 2
		if err := kernels.ResizeOut(a, 1, []int{n}); err != nil {
			return err
		}
		copy(exectest.WordsOf(a, 1), exectest.WordsOf(a, 0))
		return nil
	}},
	{Pure: true, Schema: "test::total.out(Tensor self, *, Tensor(a!) out)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		for i := range exectest.WordsOf(a, 1) {
			exectest.WordsOf(a, 1)[i] = int64(a.Tensor(0).Numel() + i)
			for _, v := range exectest.WordsOf(a, 0) {
				exectest.WordsOf(a, 1)[i] += v
			}
		}
		return nil
	}},
	{Pure: true, Schema: "test::bump_(Tensor(a!) self, Tensor src)", Func: exectest.WordOps[exectest.OpUpdate].Func},
}

const (
	mixBoth = iota + 3 // after the operators of flowProgram
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

// mix generates programs with everything that regions must handle.
type mix struct {
	exectest.Flow
	offset int64 // of the next planned value
	sizes  int   // the size list of views, -1
	owned  []int // values that only rewrite uses: an input that the program overwrites, and others
	keeps  bool  // it has a state that is read through views that the exporter left out
	kept   []int // that state, and these views
}

// newMix returns a random method, if keeps is set with a state that is read through views that the exporter left out.
func newMix(r *rand.Rand, keeps bool) *pte.Method {
	p := &mix{Flow: exectest.Flow{Language: exectest.Words{}, R: r}, keeps: keeps}
	p.M.Operators = []pte.Operator{{Name: "test::add", Overload: "out"}, {Name: "test::update_"}, {Name: "test::view"}}
	p.begin()
	p.More = p.statement
	m := p.Make(exectest.ConstantWords(r), exectest.ConstantWords(r))
	for range r.IntN(3) {
		m.Outputs = append(m.Outputs, m.Outputs[r.IntN(len(m.Outputs))])
	}
	if n := len(p.Dynamic); n > 0 {
		m.Outputs = append(m.Outputs, p.Dynamic[n-1])
	}
	m.Name = "forward"
	return m
}

// begin adds the operators, and the input of dynamic size.
func (p *mix) begin() {
	for i := range mixOps {
		name, overload := exectest.SplitName(mixOps[i].Name())
		p.M.Operators = append(p.M.Operators, pte.Operator{Name: name, Overload: overload})
	}
	p.M.Operators = append(p.M.Operators, pte.Operator{Name: "executorch_prim::et_view", Overload: "default"})
	in, overwritten := p.grown(), p.Value()
	p.M.Inputs, p.Dynamic, p.owned = append(p.M.Inputs, in, overwritten), append(p.Dynamic, in), append(p.owned, overwritten)
	p.M.Values = append(p.M.Values, pte.Value{Kind: tensor.KindInt, Int: -1})
	p.M.Values = append(p.M.Values, pte.Value{Kind: tensor.KindIntList, Items: []int{len(p.M.Values) - 1}})
	p.sizes = len(p.M.Values) - 1
}

// grown returns a value of dynamic size.
func (p *mix) grown() int {
	v := p.Value()
	p.M.Values[v].Tensor.Dynamism = tensor.DynamicBound
	return v
}

func (p *mix) list(items ...int) int {
	p.M.Values = append(p.M.Values, pte.Value{Kind: tensor.KindTensorList, Items: items})
	return len(p.M.Values) - 1
}

func (p *mix) anyDynamic() int { return p.Dynamic[p.R.IntN(len(p.Dynamic))] }

// statement generates one of the additional statements, two times out of three.
func (p *mix) statement(depth int) bool {
	if depth > 0 && p.R.IntN(8) == 0 {
		p.Loop(depth - 1)
		return true
	}
	kinds := [...]func(){p.both, p.join, p.parts, p.scale, p.draw, p.bump, p.again, p.rewrite, p.rewrite,
		p.payload, p.payload, p.payload, p.elided, p.elided, p.copied, p.grow, p.grow, p.reshape, p.half, p.stale, p.total}
	if p.R.IntN(3) == 0 {
		return false
	}
	if p.keeps && p.R.IntN(4) == 0 {
		p.keep()
		return true
	}
	kinds[p.R.IntN(len(kinds))]()
	return true
}

func (p *mix) both() {
	x, y := p.Value(), p.Value()
	p.Call(mixBoth, p.Pick(), x, y, p.list(x, y))
	p.Defined = append(p.Defined, x, y)
}

// payload calls a delegate, one that was called before from time to time.
func (p *mix) payload() {
	d := len(p.M.Delegates)
	if d > 0 && p.R.IntN(6) == 0 {
		d = p.R.IntN(d)
	} else {
		p.M.Delegates = append(p.M.Delegates, pte.Delegate{ID: "oracle", Data: []byte{byte(1 + p.R.IntN(3)), byte(1 + p.R.IntN(2)), byte(p.R.IntN(9))}})
	}
	data := p.M.Delegates[d].Data
	var args []int
	for range data[0] {
		args = append(args, p.Pick())
	}
	for range data[1] {
		args = append(args, p.Value())
	}
	p.Add(pte.Instruction{Kind: pte.DelegateCall, Index: d, Args: args})
	p.Defined = append(p.Defined, args[data[0]:]...)
}

// mixPayload is what the payloads of payload compute: sums of their inputs, each some times.
func mixPayload(data []byte) (inputs int, do func(args []*tensor.Tensor) error) {
	inputs = int(data[0])
	return inputs, func(args []*tensor.Tensor) error {
		for k, out := range args[inputs:] {
			to := tensor.Data[int64](out)
			for i := range to {
				to[i] = int64(k)
				for n, in := range args[:inputs] {
					to[i] += int64(k+n+int(data[2])) * tensor.Data[int64](in)[i]
				}
			}
		}
		return nil
	}
}

func (p *mix) join() {
	out := p.Value()
	p.Call(mixJoin, p.list(p.Pick(), p.Pick(), p.Pick()), out, out)
	p.Defined = append(p.Defined, out)
}

func (p *mix) parts() {
	x, y := p.Value(), p.Value()
	l := p.list(x, y)
	p.Call(mixParts, p.Pick(), l, l)
	p.Defined = append(p.Defined, x, y)
}

// scale multiplies by a number that is in the program, or computed.
func (p *mix) scale() {
	p.M.Values = append(p.M.Values, pte.Value{Kind: tensor.KindInt, Int: p.R.Int64N(9)})
	n := len(p.M.Values) - 1
	if p.R.IntN(3) == 0 {
		p.Call(mixNumber, p.Pick(), n)
	}
	for range 1 + p.R.IntN(2) {
		out := p.Value()
		p.Call(mixScale, p.Pick(), n, out, out)
		p.Defined = append(p.Defined, out)
	}
}

// draw writes random numbers to a value that was read before.
func (p *mix) draw() {
	v, out := p.Value(), p.Value()
	p.Call(exectest.OpAdd, p.Pick(), p.Pick(), v, v)
	p.Call(exectest.OpAdd, v, p.Pick(), out, out)
	p.Call(mixDraw, v, v)
	fresh := p.Value()
	p.Call(mixDraw, fresh, fresh)
	p.Defined = append(p.Defined, v, out, fresh)
}

// bump changes a value in place.
func (p *mix) bump() {
	v := p.Defined[p.R.IntN(len(p.Defined))]
	p.Call(mixBump, v, p.Pick(), v)
}

// rewrite reads a value, writes it, or both, so that a loop finds the value of the previous
// iteration, or of the previous run.
func (p *mix) rewrite() {
	if len(p.owned) < 3 {
		v := p.Value()
		p.Call(exectest.OpAdd, p.Pick(), p.Pick(), v, v)
		p.owned = append(p.owned, v)
		return
	}
	v, do := p.owned[p.R.IntN(len(p.owned))], p.R.IntN(3)
	if do != 0 {
		out := p.Value()
		p.Call(exectest.OpAdd, v, p.Pick(), out, out)
		p.Defined = append(p.Defined, out)
	}
	if do != 1 {
		p.Call(exectest.OpAdd, p.Pick(), p.Pick(), v, v)
	}
}

// again writes a value that was written before, and may be read in between.
func (p *mix) again() {
	v := p.Value()
	p.Call(exectest.OpAdd, p.Pick(), p.Pick(), v, v)
	for range 1 + p.R.IntN(2) {
		out := p.Value()
		p.Call(exectest.OpAdd, v, p.Pick(), out, out)
		p.Defined = append(p.Defined, out)
	}
	p.Call(exectest.OpAdd, p.Pick(), p.Pick(), v, v)
	p.Defined = append(p.Defined, v)
}

// planned returns a value with a place.
func (p *mix) planned(offset int64) int {
	v := p.Value()
	t := p.M.Values[v].Tensor
	t.Storage, t.Offset = pte.Planned, offset
	if len(p.M.Arenas) == 0 {
		p.M.Arenas = []pte.Arena{{Size: 1 << 20}}
	}
	return v
}

// elided returns a value to which the exporter gave the place of another one.
func (p *mix) elided() {
	v, view := p.planned(p.offset), p.planned(p.offset)
	p.offset += 64
	p.Call(exectest.OpAdd, p.Pick(), p.Pick(), v, v)
	out := p.Value()
	p.Call(exectest.OpAdd, view, p.Pick(), out, out)
	p.Defined = append(p.Defined, v, view, out)
}

// keep reads a state or changes it in place, often through a view that the exporter left out.
func (p *mix) keep() {
	if len(p.kept) == 0 || p.R.IntN(2) == 0 {
		v := p.planned(p.offset)
		if len(p.kept) > 0 {
			p.M.Values[v].Tensor.Offset = p.M.Values[p.kept[0]].Tensor.Offset
		} else {
			p.offset += 64
		}
		p.kept = append(p.kept, v)
	}
	v := p.kept[p.R.IntN(len(p.kept))]
	if len(p.kept) == 1 || p.R.IntN(3) == 0 {
		p.Call(mixBump, v, p.Pick(), v)
		return
	}
	out := p.Value()
	p.Call(exectest.OpAdd, v, p.Pick(), out, out)
	p.Defined = append(p.Defined, out)
}

func (p *mix) copied() {
	to := p.Value()
	p.Add(pte.Instruction{Kind: pte.MoveCall, Index: p.Pick(), Target: to})
	p.Defined = append(p.Defined, to)
}

func (p *mix) grow() {
	out := p.grown()
	p.Call(mixGrown, p.anyDynamic(), p.anyDynamic(), out, out)
	p.Dynamic = append(p.Dynamic, out)
}

func (p *mix) reshape() {
	out := p.grown()
	p.Call(mixView, p.anyDynamic(), p.sizes, out)
	p.Dynamic = append(p.Dynamic, out)
}

func (p *mix) half() {
	out := p.grown()
	p.Call(mixHalf, p.anyDynamic(), out, out)
	p.Dynamic = append(p.Dynamic, out)
}

// stale reads a view whose size is that of the previous contents of its bytes.
func (p *mix) stale() {
	v, view, out := p.grown(), p.grown(), p.grown()
	p.Call(mixGrown, p.anyDynamic(), p.anyDynamic(), v, v)
	p.Call(mixView, v, p.sizes, view)
	p.Call(mixHalf, p.anyDynamic(), v, v)
	p.Call(mixGrown, view, p.anyDynamic(), out, out)
	p.Dynamic = append(p.Dynamic, out, v)
}

func (p *mix) total() {
	out := p.Value()
	p.Call(mixTotal, p.anyDynamic(), out, out)
	p.Defined = append(p.Defined, out)
}

// mixSet returns the operators of the programs.
func mixSet() *kernels.Set {
	view, _, _, _ := kernels.NewSet(portable.Ops()).Lookup("executorch_prim::et_view.default")
	return kernels.NewSet(exectest.WordOps, mixOps, []kernels.Op{*view})
}
