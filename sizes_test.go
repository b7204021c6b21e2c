//go:build linux

package etrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/kernels/tensor"
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
	options []Option
}

// sizedWays returns the ways: without lowering first, then on each engine with one and two threads.
func sizedWays() []way {
	list := []way{{"operators", []Option{WithLowering(LowerOff), WithThreads(1), WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineReference})}}}
	engines := []xnnpack.Engine{xnnpack.EngineReference}
	if _, err := xnn.Open(xnntest.Path()); err == nil {
		engines = append(engines, xnnpack.EngineNative)
	}
	for _, engine := range engines {
		for threads := 1; threads <= 2; threads++ {
			list = append(list, way{fmt.Sprintf("%s engine, %d threads", engine, threads), []Option{WithLowering(LowerAuto), WithMinProfit(-1), WithThreads(threads),
				WithDelegates(xnnpack.Backend{Engine: engine, Library: xnntest.Path()})}})
		}
	}
	return list
}

// sizedMethod is a program loaded in one way: a method that stays, and a source of new ones.
type sizedMethod struct {
	way
	live       *Method
	guard      *guard
	own, fresh *Program
}

func (m *sizedMethod) close() error {
	return errors.Join(m.live.Close(), m.own.Close(), m.fresh.Close())
}

func (s *sized) load(w way, options ...Option) (*sizedMethod, error) {
	var programs [2]*Program
	for i, mode := range []PlanMode{PlanOwn, PlanNaive} {
		data := ptetest.Write(&pte.Program{Methods: []pte.Method{s.m}}, ptetest.Layout{})
		p, err := Parse(data, slices.Concat(w.options, options, []Option{WithOperatorSet(sizedOps), WithPlan(mode)})...)
		if err != nil {
			return nil, err
		}
		programs[i] = p
	}
	live, err := programs[0].Load(context.Background(), "")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	return &sizedMethod{w, live, poisonDead(live, 0xAA), programs[0], programs[1]}, nil
}

// runSized runs the program of a seed.
func runSized(seed uint64, ways []way, count func(counter int, n int)) error {
	r := rand.New(rand.NewPCG(seed, 11))
	s := newSized(r)
	if len(s.m.Outputs) == 0 {
		return nil
	}
	var list []*sizedMethod
	for _, w := range ways {
		m, err := s.load(w)
		if err != nil {
			return err
		}
		defer m.close()
		list = append(list, m)
		if m.live.lowered != nil {
			count(3, m.live.lowered.Taken())
		}
	}
	for call := range 6 {
		sizes := s.sizesOf(r)
		if call == 0 && r.IntN(2) == 0 {
			sizes = nil // the declared ones
		}
		n, err := compareSized(list, sizes, seed+uint64(call))
		if err != nil {
			return fmt.Errorf("call %d, sizes %v: %w\n%s\nbounds %v, inputs %v", call, sizes, err, listing(list[0].live), s.bounds, s.dims)
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
		a, errA := callSized(m.live, sizes, seed)
		b, errB := callSized(fresh, sizes, seed)
		if err := errors.Join(m.guard.written, fresh.Close()); err != nil {
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
func sizedTolerance(m *Method) float64 {
	for i := range m.ir.Steps {
		if strings.HasPrefix(m.ir.StepName(&m.ir.Steps[i]), "quantized") {
			return 0.4
		}
	}
	return 1e-3
}

// callSized calls a method, and returns copies of its outputs.
func callSized(m *Method, sizes [][]int, seed uint64) (outputs []*tensor.Tensor, err error) {
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
	if err := m.Execute(context.Background()); err != nil {
		return nil, err
	}
	for i := range m.ir.Outputs {
		t := outputTensor(m, i)
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
			most = max(most, math.Abs(float64(v)))
		}
		for k := range y {
			if d := math.Abs(float64(x[k]) - float64(y[k])); x[k] != y[k] && !(d <= tolerance*most) && !(x[k] != x[k] && y[k] != y[k]) {
				return fmt.Errorf("output %d of sizes %v, element %d: got %v, want %v", i, w.Sizes, k, x[k], y[k])
			}
		}
	}
	return nil
}
