package compile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/delegatetest"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/pte"
)

// mixed is what became of a random program.
type mixed struct {
	regions, payloads int  // payloads merged into regions
	rejected          bool // operators had to execute a region
}

// mask is an oracle of regions at random, and of the payloads of random programs.
func mask(seed, share uint64, hard bool) delegatetest.Oracle {
	by := delegatetest.AtRandom(seed, share, hard)
	by.Payload = mixPayload
	return by
}

// mixOptions returns the options of random programs; lowered: all regions are, by a backend.
func mixOptions(by delegate.Backend, lowered bool) prepare.Options {
	return prepare.Options{Operators: mixSet(), Backends: map[string]delegate.Backend{by.ID(): by}, AsWritten: true,
		Plan: plan.Options{Mode: plan.Own, Preserve: true}, Rewrite: lowered, Lower: lowered, LowerAll: lowered}
}

// lowerMix lowers a random program by an oracle, and executes it beside the original.
func lowerMix(seed uint64) (n mixed, err error) {
	r := rand.New(rand.NewPCG(seed, 5))
	spec := newMix(r, seed%4 == 0)
	share, hard := []uint64{10, 9, 6, 3}[r.IntN(4)], r.IntN(2) == 0
	load := func(o prepare.Options) (*exectest.Method, error) {
		o.Plan.Preserve = r.IntN(2) != 0
		return exectest.Load(spec, 0, o)
	}
	reference, err := load(mixOptions(delegatetest.Oracle{Payload: mixPayload}, false))
	if err != nil {
		return n, err
	}
	m, err := load(mixOptions(mask(seed, share, hard), true))
	if err != nil {
		return n, fmt.Errorf("lowered: %w\n%s", err, reference.Listing())
	}
	m.Poison(0xAA)
	reference.Poison(0x55)
	for run := range 5 {
		if err := compareMix(m, reference, run); err != nil {
			return n, fmt.Errorf("run %d, %w\n%s\nreference:\n%s", run, err, m.Listing(), reference.Listing())
		}
	}
	for i := range m.Prepared.Lowered.Regions {
		if r := &m.Prepared.Lowered.Regions[i]; r.Delegate >= 0 {
			n.regions++
			n.payloads += len(r.Merged)
		}
	}
	n.rejected = m.Prepared.Refusal.Load() != nil
	return n, nil
}

func compareMix(m, reference *exectest.Method, run int) error {
	for _, m := range []*exectest.Method{reference, m} {
		if err := setMixInputs(m, run); err != nil {
			return err
		}
		if err := m.Execute(context.Background()); err != nil {
			return err
		}
	}
	for i, v := range reference.Spec.Outputs {
		got, want := m.Tensor(i), reference.Tensor(i)
		if !slices.Equal(got.Sizes, want.Sizes) || !bytes.Equal(got.Data, want.Data) {
			return fmt.Errorf("output %d (value %d): got %v %v, want %v %v", i, v,
				got.Sizes, tensor.Data[int64](got), want.Sizes, tensor.Data[int64](want))
		}
	}
	return nil
}

// setMixInputs sets random inputs, and a size that changes with each run.
func setMixInputs(m *exectest.Method, run int) error {
	r := rand.New(rand.NewPCG(uint64(run), 6))
	for i, v := range m.Spec.Inputs {
		in := m.Spec.Values[v].Tensor
		sizes := in.Sizes
		if in.Dynamism != tensor.Static {
			sizes = []int{1 + (run+2)%exectest.Len}
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

// TestLoweredExecutionEqualsOriginal lowers random programs with every kind of sharing, at random
// and regardless of cost.
func TestLoweredExecutionEqualsOriginal(t *testing.T) {
	regions, merged, rejecting, payloads := 0, 0, 0, 0
	for seed := range uint64(lowerSeeds) {
		n, err := lowerMix(seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		payloads += n.payloads
		if regions += n.regions; n.regions > 0 {
			merged++
		}
		if n.rejected {
			rejecting++
		}
	}
	if merged < lowerSeeds/2 || rejecting < lowerSeeds/50 || payloads < lowerSeeds/10 {
		t.Errorf("only %d of %d programs have regions, %d in all with %d payloads, of which %d rejected some sizes: the test shows nothing",
			merged, lowerSeeds, regions, payloads, rejecting)
	}
	t.Logf("%d regions with %d payloads in %d of %d programs, %d of which rejected some sizes", regions, payloads, merged, lowerSeeds, rejecting)
}

const lowerSeeds = 1000

// TestVerifyLowering checks that an instance can compare itself with the same method without
// lowering.
func TestVerifyLowering(t *testing.T) {
	spec := newMix(rand.New(rand.NewPCG(4, 5)), false)
	wrong := mask(1, 10, false)
	load := func(by delegate.Backend) *exectest.Method {
		plain := exectest.New(nil, spec, 0, mixOptions(by, false))
		m, err := exectest.New(nil, spec, 0, mixOptions(by, true)).Load(context.Background(), exec.Options{Plain: plain.Prepare})
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
			if m.Prepared.Lowered.Accepted() == 0 || differs != by.differs || len(m.Distances()) != len(spec.Outputs) {
				t.Errorf("%s, run %d: %d regions, distances %v", name, run, m.Prepared.Lowered.Accepted(), m.Distances())
			}
		}
		if err := errors.Join(m.Reset(), m.Close()); err != nil {
			t.Error(err)
		}
	}
}

// liar is an oracle whose regions add one to their outputs.
type liar struct{ delegatetest.Oracle }

func (l liar) CompileGraph(ctx context.Context, g *lowering.Graph) (delegate.Image, error) {
	img, err := l.Oracle.CompileGraph(ctx, g)
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

// TestLoweringThatFails checks that a method runs unchanged, or after another attempt, if regions
// fail to compile, exceed limits, or are canceled.
func TestLoweringThatFails(t *testing.T) {
	spec := newMix(rand.New(rand.NewPCG(1, 5)), false)
	ctx, cancel := context.WithCancel(context.Background())
	compiled, fails := 0, false
	by := mask(1, 6, false)
	by.Refuse = func(*lowering.Graph) error {
		switch compiled++; {
		case fails:
			return errors.New("no")
		case compiled == 3:
			cancel()
		}
		return nil
	}
	p := exectest.New(nil, spec, 0, mixOptions(by, true))
	if _, err := p.Load(ctx, exec.Options{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v after %d graphs", err, compiled)
	}
	m, err := p.Load(context.Background(), exec.Options{})
	if err != nil || m.Prepared.Lowered.Accepted() < 3 || len(m.Prepared.Images) != len(spec.Delegates)+m.Prepared.Lowered.Accepted() {
		t.Fatalf("second attempt: %v", err)
	}
	fails = true
	plain, err := exectest.Load(spec, 0, mixOptions(by, true))
	if err != nil || plain.Prepared.Lowered.Accepted() != 0 || len(plain.Prepared.Images) != len(spec.Delegates) {
		t.Fatalf("nothing compiles: %v", err)
	}
	for run := range 3 {
		if err := compareMix(m, plain, run); err != nil {
			t.Error(err)
		}
	}
	checkNoRoom(t, spec, plain.Plan().Bytes())
}

// checkNoRoom lowers a method whose regions need more working memory than allowed.
func checkNoRoom(t *testing.T, spec *pte.Method, plain int64) {
	t.Helper()
	dropped := 0
	for limit := plain; limit < plain+256; limit += 16 {
		o := mixOptions(mask(1, 6, false), true)
		o.Limits.Planned = limit
		m, err := exectest.Load(spec, 0, o)
		if err != nil {
			t.Fatalf("%d bytes, of which %d without lowering: %v", limit, plain, err)
		}
		if m.Prepared.Lowered.Accepted() < len(m.Prepared.Lowered.Regions) {
			dropped++
		}
	}
	if dropped == 0 {
		t.Error("all regions fit in what the method takes without them: the test shows nothing")
	}
}
