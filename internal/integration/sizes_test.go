//go:build linux

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// TestSizes runs random programs at random sequences of sizes, in methods that stay loaded. Each call equals that of a new
// method with a separate buffer for each storage, to the bit, and that of the operators without lowering.
func TestSizes(t *testing.T) {
	c := &campaign.Campaign{Test: "TestSizes", Usual: 60, Memory: 256 << 20,
		Counters: []string{"programs", "calls", "refused calls", "regions"},
		Start: func(t *testing.T, p *campaign.Process) func(seed uint64) error {
			ways := sizedWays()
			return func(seed uint64) error {
				p.Count(0, 1)
				if err := runSized(seed, ways, p.Count); err != nil {
					return &campaign.Finding{Kind: "sizes", Message: err.Error()}
				}
				return nil
			}
		}}
	c.Run(t)
}

// way is a way to run a program.
type way struct {
	name    string
	options []etrun.Option
}

// sizedWays returns the ways: without lowering first, then on each engine with one and two threads.
func sizedWays() []way {
	list := []way{{"operators", []etrun.Option{etrun.WithLowering(etrun.LowerOff), etrun.WithThreads(1),
		etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo})}}}
	engines := []xnnpack.Engine{xnnpack.EngineGo}
	if _, err := xnn.Open(xnntest.Path()); err == nil {
		engines = append(engines, xnnpack.EngineNative)
	}
	for _, engine := range engines {
		for threads := 1; threads <= 2; threads++ {
			list = append(list, way{fmt.Sprintf("%s engine, %d threads", engine, threads), []etrun.Option{etrun.WithLowering(etrun.LowerAll),
				etrun.WithThreads(threads),
				etrun.WithDelegates(xnnpack.Backend{Engine: engine, Library: xnntest.Path()})}})
		}
	}
	return list
}

// sizedMethod is a program loaded in one way: a method that stays, and a source of new ones.
type sizedMethod struct {
	way
	live       *etrun.Method
	guard      *exectest.Guard
	own, fresh *etrun.Program
}

func (m *sizedMethod) close() error {
	return errors.Join(m.live.Close(), m.own.Close(), m.fresh.Close())
}

func (w way) load(file []byte) (*sizedMethod, error) {
	var programs [2]*etrun.Program
	for i, mode := range []etrun.PlanMode{etrun.PlanOwn, etrun.PlanNaive} {
		p, err := etrun.Parse(slices.Clone(file), slices.Concat(w.options,
			[]etrun.Option{etrun.WithOperatorSet(sizedOps), etrun.WithPlan(mode)})...)
		if err != nil {
			return nil, err
		}
		programs[i] = p
	}
	live, err := programs[0].Load(context.Background(), "")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	guard := exectest.NewGuard(live.Report().Plan, 0xAA)
	return &sizedMethod{w, live, guard, programs[0], programs[1]}, live.Observe(guard)
}

// loadSized loads a program in several ways.
func loadSized(file []byte, ways []way) (list []*sizedMethod, err error) {
	for _, w := range ways {
		m, err := w.load(file)
		if err != nil {
			return list, err
		}
		list = append(list, m)
	}
	return list, nil
}

func closeSized(list []*sizedMethod) {
	for _, m := range list {
		m.close()
	}
}

// file returns the program.
func (s *sized) file() []byte {
	return ptetest.Write(&pte.Program{Methods: []pte.Method{s.M}}, ptetest.Layout{})
}

// runSized runs the program of a seed.
func runSized(seed uint64, ways []way, count func(counter int, n int)) error {
	r := rand.New(rand.NewPCG(seed, 11))
	s := newSized(r, narrow...)
	if len(s.M.Outputs) == 0 {
		return nil
	}
	list, err := loadSized(s.file(), ways)
	defer closeSized(list)
	if err != nil {
		return err
	}
	for _, m := range list[1:] {
		count(3, m.live.Report().Lowered.Accepted())
	}
	for call := range 6 {
		sizes := s.sizesOf(r)
		if call == 0 && r.IntN(2) == 0 {
			sizes = nil // the declared ones
		}
		n, err := compareSized(list, sizes, seed+uint64(call))
		if err != nil {
			return fmt.Errorf("call %d, sizes %v: %w\n%s\nbounds %v, inputs %v", call, sizes, err,
				exectest.Listing(list[0].live.Report().Plan), s.bounds, s.dims)
		}
		count(1, 1)
		count(2, 1-n)
	}
	return nil
}

// compareSized calls all methods with the same inputs. It returns 0 if they refuse the sizes.
func compareSized(list []*sizedMethod, sizes [][]int, seed uint64) (ran int, err error) {
	var want []*tensor.Tensor
	var refused error
	for i, m := range list {
		fresh, err := m.fresh.Load(context.Background(), "")
		if err != nil {
			return 0, fmt.Errorf("%s, new: %w", m.name, err)
		}
		a, errA := callSized(m.guard, m.live, sizes, seed)
		b, errB := callSized(context.Background(), fresh, sizes, seed)
		if err := errors.Join(m.guard.Fault, fresh.Close()); err != nil {
			return 0, fmt.Errorf("%s: %w", m.name, err)
		}
		if i == 0 {
			want, refused = b, errB
		}
		switch {
		case (errA == nil) != (errB == nil):
			return 0, fmt.Errorf("%s: got %v, a new method %v", m.name, errA, errB)
		case (errB == nil) != (refused == nil):
			return 0, fmt.Errorf("%s: got %v, the operators %v", m.name, errB, refused)
		case refused != nil:
			continue
		}
		if err := sameResults(a, b, 0); err != nil {
			return 0, fmt.Errorf("%s, against a new method: %w", m.name, err)
		}
		if err := sameResults(b, want, sizedTolerance(list[0].live)); err != nil {
			return 0, fmt.Errorf("%s, against the operators: %w", m.name, err)
		}
	}
	if refused != nil {
		return 0, nil
	}
	return 1, nil
}

// sizedTolerance is that of a program, relative to its largest number: codes of 8 bits may differ by one step.
func sizedTolerance(m *etrun.Method) float64 {
	flow := m.Report().Plan.Method
	for i := range flow.Steps {
		if strings.HasPrefix(flow.StepName(&flow.Steps[i]), "quantized") {
			return 0.4
		}
	}
	return 1e-3
}

// callSized calls a method, and returns copies of its outputs.
func callSized(ctx context.Context, m *etrun.Method, sizes [][]int, seed uint64) (outputs []*tensor.Tensor, err error) {
	r := rand.New(rand.NewPCG(seed, 12))
	for i, in := range m.Meta().Inputs {
		at := in.Sizes
		if sizes != nil {
			at = sizes[i]
		}
		x := tensor.Make(in.DType, at, in.DimOrder, tensor.Static)
		x.Bind(tensor.AlignedBytes(x.NBytes()))
		for k := range tensor.Data[float32](x) {
			tensor.Data[float32](x)[k] = float32(4*r.Float64() - 2)
		}
		if err := m.SetInput(i, x); err != nil {
			return nil, err
		}
	}
	if err := m.Execute(ctx); err != nil {
		return nil, err
	}
	for i := range m.NumOutputs() {
		t := tensorOf(m, i)
		c := tensor.Make(t.DType, t.Sizes, t.DimOrder, tensor.Static)
		c.Bind(slices.Clone(t.Data))
		outputs = append(outputs, c)
	}
	return outputs, nil
}

// sameResults compares outputs, to the bit if the tolerance is 0.
func sameResults(got, want []*tensor.Tensor, tolerance float64) error {
	for i, w := range want {
		g := got[i]
		if !slices.Equal(g.Sizes, w.Sizes) || g.DType != w.DType {
			return fmt.Errorf("output %d: got sizes %v, want %v", i, g.Sizes, w.Sizes)
		}
		if bytes.Equal(g.Data, w.Data) {
			continue
		}
		x, y := tensor.Data[float32](g), tensor.Data[float32](w)
		most := 1.0
		for _, v := range y {
			if v == v {
				most = max(most, math.Abs(float64(v)))
			}
		}
		for k := range y {
			if d := math.Abs(float64(x[k]) - float64(y[k])); x[k] != y[k] && !(d <= tolerance*most) && !(x[k] != x[k] && y[k] != y[k]) {
				return fmt.Errorf("output %d of sizes %v, element %d: got %v, want %v", i, w.Sizes, k, x[k], y[k])
			}
		}
	}
	return nil
}

// sizedCases are programs, and the sizes of calls, in which faults were found.
var sizedCases = []struct {
	name  string
	file  string             // in testdata, or
	build func(s *sized) val // of bounds 4, 5 and 5
	calls [][][]int          // sizes of the inputs
}{
	{"operands that are repeated at the sizes of a call", "pte/dynamic_pair_xnnpack.pte", nil,
		[][][]int{{{4, 3}, {4, 1}}, {{4, 1}, {4, 3}}, {{4, 3}, {1, 3}}, {{5, 3}, {5, 3}}, {{4, 3}, {4, 1}}}},
	{"the same as operators", "pte/dynamic_pair.pte", nil, [][][]int{{{4, 3}, {4, 1}}, {{4, 1}, {4, 3}}, {{4, 3}, {1, 3}}}},
	{"sizes that differ from those of the last call in ones", "pte/dynamic_pair_xnnpack.pte", nil,
		[][][]int{{{3, 1}, {3, 1}}, {{1, 3}, {1, 3}}, {{3, 1}, {3, 1}}, {{1, 1}, {1, 1}}}},
	{"a size of 1 that is repeated", "", func(s *sized) val {
		x := s.input(nil, 0, -7)
		return s.made("aten::sigmoid.out", 2, s.made("aten::expand_copy.out", 2, s.made("aten::tanh.out", 2, x), []int{4, 6}, false))
	}, [][][]int{{{4, 6}}, {{1, 6}}, {{4, 6}}}},
	{"a constant in another order than the one that it is declared in", "", func(s *sized) val {
		x := s.input([]uint8{1, 0}, 0, -6)
		w, _ := s.do("aten::permute_copy.out", []out{{rank: 2, order: []uint8{1, 0}}}, s.constant(5, 5), []int{1, 0})
		s.loose[int(w)] = true
		return s.made("aten::mm.out", 2, x, w)
	}, [][][]int{{{2, 5}}, {{4, 5}}}},
	{"the same, not square", "", func(s *sized) val {
		x := s.input([]uint8{1, 0}, 0, -6)
		w, _ := s.do("aten::permute_copy.out", []out{{rank: 2, order: []uint8{1, 0}}}, s.constant(3, 5), []int{1, 0})
		s.loose[int(w)] = true
		return s.made("aten::mm.out", 2, x, w)
	}, [][][]int{{{2, 5}}, {{4, 5}}}},
	{"batches of matrices that the operator does not repeat", "", func(s *sized) val {
		return s.made("aten::bmm.out", 3, s.input(nil, 0, -3, -4), s.input(nil, 0, -4, -3))
	}, [][][]int{{{4, 2, 3}, {4, 3, 2}}, {{4, 2, 3}, {1, 3, 2}}, {{1, 2, 3}, {4, 3, 2}}, {{2, 2, 3}, {2, 3, 2}}}},
	{"a sum that the operator does not repeat", "", func(s *sized) val {
		return s.made("aten::addmm.out", 2, s.input(nil, 0, -4), s.input(nil, 0, -3), s.constant(2, 3), 1, 1)
	}, [][][]int{{{4, 3}, {4, 2}}, {{1, 3}, {4, 2}}, {{4, 3}, {1, 2}}, {{2, 3}, {2, 2}}}},
}

// TestSizedCases runs programs in which faults were found.
func TestSizedCases(t *testing.T) {
	for _, c := range sizedCases {
		t.Run(c.name, func(t *testing.T) {
			file, err := os.ReadFile(testdata(c.file))
			if c.build != nil {
				s := emptySized(rand.New(rand.NewPCG(1, 13)), 2)
				s.bounds = []int{4, 5, 5}
				s.M.Outputs = []int{int(c.build(s))}
				s.declare()
				file, err = s.file(), nil
			}
			if err != nil {
				t.Fatal(err)
			}
			list, err := loadSized(file, sizedWays())
			defer closeSized(list)
			if err != nil {
				t.Fatal(err)
			}
			for i, sizes := range c.calls {
				if _, err := compareSized(list, sizes, 7); err != nil {
					t.Errorf("call %d, sizes %v: %v", i, sizes, err)
				}
			}
		})
	}
}
