//go:build linux

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/compile"
	"github.com/etrun-go/etrun/runtime/compile/compiletest"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// copiedMethods returns the digits program with further methods that are copies of its first one.
func copiedMethods(t *testing.T, names ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(testdata("digits/portable.pte"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := tree.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	plans := file.Root.Fields["execution_plan"].([]*tree.Node)
	for _, name := range names {
		plan := tree.New(plans[0].Type)
		maps.Copy(plan.Fields, plans[0].Fields)
		plans = append(plans, plan.With("name", name))
	}
	file.Root.With("execution_plan", plans)
	return file.Bytes()
}

// Weights that methods share are named data. They stay that of methods that are not quantized, or were lowered before, and are not
// named a second time.
func TestSharedWeightsStay(t *testing.T) {
	from := copiedMethods(t, "again", "more")
	go1 := xnnpack.Backend{Engine: xnnpack.EngineGo}
	o := compile.Options{Backends: map[string]delegate.Backend{go1.ID(): go1}, Writers: []lowering.Writer{xnnpack.Writer{Backend: go1}},
		Operators: etrun.DefaultOperators(), Methods: []string{"forward", "again"}, All: true, Planned: math.MaxInt32}
	low, err := compile.Lower(context.Background(), from, o)
	if err != nil {
		t.Fatal(err)
	}
	named := func(data []byte) int {
		spec, err := pte.Parse(data, pte.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return len(spec.Named)
	}
	before := named(low.Data.Bytes())
	q, err := compile.OpenQuantization(low.Data.Bytes(), compile.QuantizeOptions{By: xnnpack.Writer{Backend: go1},
		Operators: etrun.DefaultOperators(), Scheme: lowering.Scheme{Name: lowering.Dynamic8}, Methods: []string{"forward"}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := q.Write(func(int) lowering.SchemeName { return lowering.Dynamic8 })
	if err != nil || before == 0 || named(out.Data.Bytes()) != before || !slices.Contains(out.Layers, true) {
		t.Errorf("%v: layers %v, want the %d keys of before", err, out, before)
	}
	o.Methods, o.External = []string{"more"}, true
	again, err := compile.Lower(context.Background(), low.Data.Bytes(), o)
	if err != nil || again.Methods[2].Why != "" || named(again.Data.Bytes()) != before || again.External != nil {
		t.Fatalf("%v: %+v, want the %d keys of before, and no data file", err, again.Methods, before)
	}
	for _, data := range [][]byte{low.Data.Bytes(), out.Data.Bytes(), again.Data.Bytes()} {
		for _, fault := range compiletest.Check(from, data) {
			t.Error(fault)
		}
	}
}

// TestRandomQuantizedFiles quantizes random programs whose sizes vary, with all schemes, and runs the files with the plan in them.
func TestRandomQuantizedFiles(t *testing.T) {
	c := &campaign.Campaign{Test: "TestRandomQuantizedFiles", Usual: 90, Memory: 256 << 20,
		Counters: []string{"programs", "layers", "files", "calls", "outputs", "outputs below 10 dB",
			"layers dq8", "8da4w", "q8", "w8", "auto"},
		Start: func(_ *testing.T, p *campaign.Process) func(seed uint64) error {
			return func(seed uint64) error {
				q := &quantizedFile{r: rand.New(rand.NewPCG(seed, 13)), inputs: seed, count: p.Count, keeps: int(seed % 3)}
				q.count(0, 1)
				if err := q.run(); err != nil {
					return &campaign.Finding{Kind: "quantized file", Message: fmt.Sprintf("%s: %v", q.scheme.Name, err)}
				}
				return nil
			}
		}}
	c.Run(t)
}

// quantizedFile is a random program that is quantized.
type quantizedFile struct {
	r      *rand.Rand
	inputs uint64 // the seed of the first call's
	count  func(counter, n int)
	keeps  int // states
	scheme lowering.Scheme
	sized  *sized
	from   []byte
	float  []byte // the lowered program
	calls  [][][]int
	layers []compile.Layer
}

// run makes a program and quantizes it.
func (q *quantizedFile) run() error {
	q.scheme = lowering.Scheme{Name: lowering.SchemeNames[q.r.IntN(len(lowering.SchemeNames))], All: q.r.IntN(2) == 0, Group: 32,
		Observer: lowering.Observers[q.r.IntN(len(lowering.Observers))]}
	q.sized = emptySized(q.r, 2+min(1, q.r.IntN(4)))
	q.sized.widths, q.sized.keeps = []int{1, 3, 4, 32, 64}, q.keeps
	q.sized.make()
	if len(q.sized.M.Outputs) == 0 {
		return nil
	}
	q.from, q.calls = q.sized.file(), [][][]int{nil}
	for range 3 + 2*q.keeps {
		q.calls = append(q.calls, q.sized.sizesOf(q.r))
	}
	low, err := lowerGo(q.from)
	if err != nil || !low.Lowered() {
		return err
	}
	q.float = low.Data.Bytes()
	if err := q.same(q.from, xnnpack.Backend{Engine: xnnpack.EngineGo}, q.lowered); err != nil {
		return fmt.Errorf("lowered: %w", err)
	}
	x, err := compile.OpenQuantization(q.float, compile.QuantizeOptions{By: xnnpack.Writer{Backend: xnnpack.Backend{Engine: xnnpack.EngineGo}},
		Operators: sizedOps, Scheme: q.scheme})
	if err != nil {
		return err
	}
	if len(x.Refused) > 0 {
		return errors.New(x.Refused[0])
	}
	for _, by := range []delegate.Backend{x.Calibrating(), x.Measuring()} {
		if err := q.same(q.float, by, exactly); err != nil {
			return err
		}
	}
	q.layers = x.Layers()
	q.count(1, len(q.layers))
	return q.write(x)
}

// write writes the program with none, all and some of the layers, each in one of its forms, and runs what is written.
func (q *quantizedFile) write(x *compile.Quantization) error {
	if q.scheme.Name == lowering.Auto {
		x.Set(lowering.ObserveBest, q.r.IntN(2) == 0)
	}
	for _, parts := range []int{0, 1, 3} { // one in so many layers is quantized
		forms := make([]lowering.SchemeName, len(q.layers))
		for l := range forms {
			if f := q.layers[l].Forms; len(f) > 0 && parts > 0 && q.r.IntN(parts) == 0 {
				forms[l] = f[q.r.IntN(len(f))]
			}
		}
		of := func(l int) lowering.SchemeName { return forms[l] }
		out, err := x.Write(of)
		if err != nil {
			return err
		}
		again, err := x.Write(of)
		if err != nil || !bytes.Equal(again.Data.Bytes(), out.Data.Bytes()) {
			return fmt.Errorf("%w: the same layers have different files", err)
		}
		n := 0
		for l, is := range out.Layers {
			if is && forms[l] == "" {
				return fmt.Errorf("layer %s is quantized, although it was to stay", q.layers[l].Name())
			}
			if is {
				n++
			}
		}
		if n == 0 {
			if !bytes.Equal(out.Data.Bytes(), q.float) {
				return errors.New("no layer is quantized, and the file is another one")
			}
			continue
		}
		q.count(2, 1)
		q.count(6+slices.Index(lowering.SchemeNames, q.scheme.Name), n)
		if faults := compiletest.Check(q.from, out.Data.Bytes()); len(faults) > 0 {
			return errors.New(faults[0])
		}
		if err := q.engines(out.Data.Bytes(), x.Trying(of)); err != nil {
			return err
		}
	}
	return nil
}

// engines runs a file on the Go engine, with the results of a trial, and on the library if it is there.
func (q *quantizedFile) engines(data []byte, trial delegate.Backend) error {
	go1, err := q.results(data, xnnpack.Backend{Engine: xnnpack.EngineGo}, q.nearly)
	if err != nil {
		return fmt.Errorf("Go engine: %w", err)
	}
	err = q.same(q.float, trial, func(got, _ []*tensor.Tensor) error {
		want := go1[0]
		go1 = go1[1:]
		return exactly(got, want)
	})
	if err != nil {
		return fmt.Errorf("a trial of the same layers: %w", err)
	}
	if _, err := xnn.Open(xnntest.Path()); err != nil {
		return nil
	}
	defer func(inputs uint64) { q.inputs = inputs }(q.inputs)
	var sums []apart
	for range manyInputs {
		if sums, err = q.apart(data, sums); errors.Is(err, etrun.ErrUnsupported) { // the library computes a node wrongly on this processor
			return nil
		}
		far := slices.IndexFunc(sums, apart.far)
		if err != nil || far < 0 {
			return err
		}
		err = fmt.Errorf("result %d of all calls: %+v", far, sums[far])
		q.inputs += 1000
	}
	return err
}

// manyInputs is of how many inputs noise is summed up that is too much for one.
const manyInputs = 16

// apart is the noise between the results of engines, that of quantization, that between the engines' results of floats, and the signal.
type apart struct{ engines, quantization, floats, signal float64 }

// far reports whether engines differ by more than they may. They round elements of quantized values to other steps that are nearly half a
// step off: the difference is twice the error. In few terms errors may cancel by chance, but not in the sum over many inputs.
func (a apart) far() bool { return a.engines > 4*(a.quantization+a.floats)+1e-6*a.signal+1e-9 }

// apart adds what results of a file on both engines, of all calls, are apart.
func (q *quantizedFile) apart(data []byte, sums []apart) (list []apart, err error) {
	native := xnnpack.Backend{Engine: xnnpack.EngineNative, Library: xnntest.Path()}
	go1, err := q.results(data, xnnpack.Backend{Engine: xnnpack.EngineGo}, q.nearly)
	if err != nil {
		return nil, fmt.Errorf("Go engine: %w", err)
	}
	floats, err := q.results(q.float, native, func(_, _ []*tensor.Tensor) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("native engine, floats: %w", err)
	}
	err = q.same(data, native, func(got, want []*tensor.Tensor) error {
		first, float := go1[0], floats[0]
		go1, floats = go1[1:], floats[1:]
		for i := range want {
			var a apart
			if len(list) < len(sums) {
				a = sums[len(list)]
			}
			signal, quantization := noise(first[i], want[i])
			_, engine := noise(float[i], want[i])
			_, engines := noise(got[i], first[i])
			list = append(list, apart{a.engines + engines, a.quantization + quantization, a.floats + engine, a.signal + signal})
			forgetNaN(got[i], want[i])
		}
		return q.nearly(got, want)
	})
	if err != nil {
		return nil, fmt.Errorf("native engine: %w", err)
	}
	return list, nil
}

// results runs a program, and returns the results by call.
func (q *quantizedFile) results(data []byte, by delegate.Backend, check func(got, want []*tensor.Tensor) error) (list [][]*tensor.Tensor, err error) {
	err = q.same(data, by, func(got, want []*tensor.Tensor) error {
		list = append(list, got)
		return check(got, want)
	})
	return list, err
}

// same runs a program beside the lowered one.
func (q *quantizedFile) same(data []byte, by delegate.Backend, compare func(got, want []*tensor.Tensor) error) error {
	reference, err := q.load(q.float, xnnpack.Backend{Engine: xnnpack.EngineGo})
	if err != nil {
		return err
	}
	defer reference.Program().Close()
	defer reference.Close()
	m, err := q.load(data, by)
	if err != nil {
		return err
	}
	defer m.Program().Close()
	defer m.Close()
	plan := m.Report().Plan
	if n := len(plan.Conflicts); n > 0 {
		return fmt.Errorf("%d conflicts in the plan of the file", n)
	}
	g := exectest.NewGuard(plan, 0xAA)
	if err := m.Observe(g); err != nil {
		return err
	}
	for i, sizes := range q.calls {
		want, refused := callSized(context.Background(), reference, sizes, q.inputs+uint64(i))
		got, err := callSized(g, m, sizes, q.inputs+uint64(i))
		switch {
		case (err == nil) != (refused == nil):
			return fmt.Errorf("call of sizes %v: got %w, the lowered program %v\n%s", sizes, err, refused, exectest.Listing(plan))
		case err == nil:
			err = errors.Join(compare(got, want), g.Fault)
		default:
			err = g.Fault
		}
		if refused != nil || i == 4 { // a new sequence
			err = errors.Join(err, reference.Reset(), m.Reset())
		}
		q.count(3, 1)
		if err != nil {
			return fmt.Errorf("call of sizes %v: %w\n%s", sizes, err, exectest.Listing(plan))
		}
	}
	return nil
}

// load loads a program with the plan in its file.
func (q *quantizedFile) load(data []byte, by delegate.Backend) (*etrun.Method, error) {
	p, err := etrun.Parse(data, etrun.WithOperatorSet(sizedOps), etrun.WithThreads(1), etrun.WithLowering(etrun.LowerOff),
		etrun.WithPlan(etrun.PlanFile), etrun.WithDelegates(by))
	if err != nil {
		return nil, err
	}
	return p.Load(context.Background(), "")
}

// lowered compares results of operators and of the lowered program; see sizedTolerance.
func (q *quantizedFile) lowered(got, want []*tensor.Tensor) error {
	tolerance := 1e-3
	if q.sized.codes {
		tolerance = 0.4
	}
	return sameResults(want, got, tolerance)
}

func exactly(got, want []*tensor.Tensor) error { return sameResults(got, want, 0) }

// nearly requires outputs of the same sizes, of numbers where the lowered program has numbers. It counts those that are not near.
func (q *quantizedFile) nearly(got, want []*tensor.Tensor) error {
	for i, w := range want {
		if err := sameResults(got[i:i+1], want[i:i+1], 1e30); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
		q.count(4, 1)
		if signal, noise := noise(got[i], w); noise*10 > signal && noise > 1e-9 {
			q.count(5, 1)
		}
	}
	return nil
}

// forgetNaN sets the numbers that the library has where NaN is wanted: its minima and maxima drop it.
func forgetNaN(got, want *tensor.Tensor) {
	if want.DType != tensor.Float32 || got.Numel() != want.Numel() {
		return
	}
	for k, y := range tensor.Data[float32](want) {
		if y != y {
			tensor.Data[float32](got)[k] = y
		}
	}
}

// noise returns the sums of the squares of floats, and of their differences.
func noise(got, want *tensor.Tensor) (signal, noise float64) {
	if want.DType != tensor.Float32 {
		return 0, 0
	}
	for k, y := range tensor.Data[float32](want) {
		d := float64(tensor.Data[float32](got)[k]) - float64(y)
		signal, noise = signal+float64(y)*float64(y), noise+d*d
	}
	return signal, noise
}

// TestQuantizedFileSeeds quantizes programs whose files were wrong.
func TestQuantizedFileSeeds(t *testing.T) {
	for seed, why := range map[uint64]string{
		930001883: "the library multiplies by ratios of scales of 8 bits: engines differ by steps",
		510003261: "a quotient of values of another payload, small ones of which had 0 steps",
		510003972: "the same in one payload", 610003651: "and of means of such values",
		660011540: "a quotient of state, to which the values are copied", 660014920: "and of an operator's function of it",
		660028587: "a quotient of sums of few products", 660011320: "and of an operator's",
		730005786: "the library does not convert between scales that are so far apart",
		730015544: "errors of 4 terms cancel by chance: the noise of quantization is small, and that of the engines is not",
		730016967: "a convolution that stays, as readers would take its image's layout for a fault: the trial had quantized it",
	} {
		q := &quantizedFile{r: rand.New(rand.NewPCG(seed, 13)), inputs: seed, count: func(int, int) {}, keeps: int(seed % 3)}
		if err := q.run(); err != nil || len(q.layers) == 0 {
			t.Errorf("seed %d (%s): %d layers, %v", seed, why, len(q.layers), err)
		}
	}
}

// A layer stays in floats if the program divides by its results, in its payload, in another one, or by an operator.
func TestDivisors(t *testing.T) {
	for _, c := range []struct {
		name  string
		op    string
		args  func(s *sized, layer val) []any
		stays bool
	}{
		{"a divisor", "aten::div.out", func(s *sized, layer val) []any { return []any{s.constant(4, 8), layer} }, true},
		{"a dividend", "aten::div.out", func(s *sized, layer val) []any { return []any{layer, s.constant(4, 8)} }, false},
		{"an operator's operand", "aten::log.out", func(_ *sized, layer val) []any { return []any{layer} }, true},
		{"moved by an operator", "aten::log.out", func(s *sized, layer val) []any {
			return []any{s.made("aten::flip.out", 2, layer, []int{0})}
		}, true},
		{"dimensions that other calls share", "aten::log.out", func(s *sized, layer val) []any {
			dims := val(s.argument([]int{0}))
			s.made("aten::flip.out", 2, layer, dims)
			return []any{s.made("aten::flip.out", 2, val(s.M.Inputs[0]), dims)}
		}, false},
		{"a function that is 0 where it is", "aten::rsqrt.out", func(s *sized, layer val) []any {
			return []any{s.made("aten::abs.out", 2, layer)}
		}, true},
		{"one that is not", "aten::log.out", func(s *sized, layer val) []any { return []any{s.made("aten::sigmoid.out", 2, layer)} }, false},
		{"with a constant added", "aten::rsqrt.out", func(s *sized, layer val) []any {
			return []any{s.made("aten::add.out", 2, s.made("aten::abs.out", 2, layer), s.constant(4, 8), 1)}
		}, false},
	} {
		for _, scheme := range []lowering.SchemeName{lowering.Static8, lowering.Dynamic8, lowering.Weights8} {
			s := emptySized(rand.New(rand.NewPCG(1, 1)), 1)
			x, w := s.input(nil, -5, -33), s.constant(8, 32)
			for _, v := range []val{x, w} { // a logarithm is a number
				for i, y := range tensor.Data[float32](s.tensors[0][int(v)]) {
					tensor.Data[float32](s.tensors[0][int(v)])[i] = max(y, -y)
				}
			}
			layer := s.made("aten::linear.out", 2, x, w, nil)
			s.made(c.op, 2, c.args(s, layer)...)
			s.finish()
			low, err := lowerGo(s.file())
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			q, err := compile.OpenQuantization(low.Data.Bytes(), compile.QuantizeOptions{Operators: sizedOps, Scheme: lowering.Scheme{Name: scheme},
				By: xnnpack.Writer{Backend: xnnpack.Backend{Engine: xnnpack.EngineGo}}})
			if err != nil || len(q.Layers()) == 0 {
				t.Fatalf("%s, %s: no layers, %v", c.name, scheme, err)
			}
			want := c.stays && scheme != lowering.Weights8
			if l := q.Layers()[0]; (l.Reason != "") != want {
				t.Errorf("%s, %s: layer %s with reason %q, want it to stay: %v", c.name, scheme, l.Name(), l.Reason, want)
			}
		}
	}
}

// lowerGo lowers a program for the Go engine, whatever that costs.
func lowerGo(data []byte) (*compile.Result, error) {
	by := xnnpack.Backend{Engine: xnnpack.EngineGo}
	return compile.Lower(context.Background(), data, compile.Options{Backends: map[string]delegate.Backend{by.ID(): by},
		Writers: []lowering.Writer{xnnpack.Writer{Backend: by}}, Operators: etrun.DefaultOperators(), All: true, Planned: math.MaxInt32})
}
