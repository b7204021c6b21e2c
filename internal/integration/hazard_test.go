package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// twoConds is y = p ? x + 1.5 : 2.5x, then z = q ? x + 3.5 : 4.5x, then y + z. The second condition
// must not overwrite the result of the first.
func twoConds(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(testdata("pte/two_conds.pte"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// checkTwoConds runs the program in all combinations of its predicates, twice.
func checkTwoConds(t *testing.T, data []byte, options ...etrun.Option) *etrun.Method {
	t.Helper()
	p, err := etrun.Parse(data, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	m, err := p.Load(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	for range 2 {
		for c, want := range twoCondsAnswers {
			truth := func(b bool) *tensor.Tensor { return tensor.Of([]bool{b}) }
			err := errors.Join(m.SetInput(0, truth(c.p)), m.SetInput(1, truth(c.q)), m.SetInput(2, tensor.Of([]float32{1, 2, 3}, 3)),
				m.Execute(context.Background()))
			if err != nil {
				t.Fatal(err)
			}
			if got := tensor.Data[float32](tensorOf(m, 0)); !slices.Equal(got, want) {
				t.Errorf("%v: got %v, want %v", c, got, want)
			}
		}
	}
	return m
}

var twoCondsAnswers = map[struct{ p, q bool }][]float32{
	{true, true}: {7, 9, 11}, {true, false}: {7, 12.5, 18}, {false, true}: {7, 10.5, 14}, {false, false}: {7, 14, 21},
}

func TestSequentialConditions(t *testing.T) {
	for name, mode := range everyPlan {
		t.Run(name, func(t *testing.T) { checkTwoConds(t, twoConds(t), etrun.WithPlan(mode)) })
	}
}

// overlapping is the program with the results of both conditions at the same address.
func overlapping(t *testing.T) (data []byte, y, z int) {
	t.Helper()
	p, err := pte.Parse(twoConds(t), pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m := &p.Methods[0]
	last := m.Chains[0].Instructions[len(m.Chains[0].Instructions)-1] // y + z
	y, z = last.Args[0], last.Args[1]
	m.Values[z].Tensor.Offset = m.Values[y].Tensor.Offset
	return ptetest.Write(p, ptetest.Layout{}), y, z
}

// A file's plan with overlapping live values is detected, reported, and not used.
func TestOverlappingPlan(t *testing.T) {
	data, y, z := overlapping(t)
	for name, mode := range everyPlan {
		t.Run(name, func(t *testing.T) {
			mp := checkTwoConds(t, data, etrun.WithPlan(mode)).Report().Plan
			if len(mp.Conflicts) != 1 || mp.File.Whole || mp.Source == "file" {
				t.Fatalf("conflicts %v, file plan whole: %v, in use: %s", mp.Conflicts, mp.File.Whole, mp.Source)
			}
			c := mp.Conflicts[0]
			got := []int{mp.Method.Storages[c.A].Values[0], mp.Method.Storages[c.B].Values[0]}
			slices.Sort(got)
			if !slices.Equal(got, []int{min(y, z), max(y, z)}) || c.Hi-c.Lo != 12 {
				t.Errorf("conflict %v of values %v, want values %d and %d on 12 bytes", c, got, y, z)
			}
		})
	}
}

func TestStrictPlanRefusesOverlap(t *testing.T) {
	checkTwoConds(t, twoConds(t), etrun.WithStrictPlan())
	data, y, z := overlapping(t)
	p, err := etrun.Parse(data, etrun.WithStrictPlan())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	_, err = p.Load(context.Background(), "")
	if !errors.Is(err, etrun.ErrFormat) || !strings.Contains(err.Error(), fmt.Sprintf("values [%d] and [%d] share bytes", y, z)) {
		t.Errorf("got %v, want a refusal that names values %d and %d", err, y, z)
	}
}

// TestPoisonedPrograms runs every program while the dead bytes of its arenas are overwritten.
func TestPoisonedPrograms(t *testing.T) {
	files, err := filepath.Glob(testdata("*/*.pte"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, path := range files {
		ran += checkPoisoned(t, path, testdata("pte/external_weights.ptd"))
	}
	if ran < len(files)/2 {
		t.Errorf("only %d executes for %d programs", ran, len(files))
	}
}

// checkPoisoned compares runs of a program's methods with and without overwritten dead bytes, and
// counts the methods that ran.
func checkPoisoned(t *testing.T, path string, dataFiles ...string) (ran int) {
	t.Helper()
	for name, mode := range everyPlan {
		p, err := etrun.Open(path, etrun.WithPlan(mode), etrun.WithThreads(1), etrun.WithDelegates(all.Backends()...),
			etrun.WithDataFiles(dataFiles...))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		n, _ := comparePoisoned(t, fmt.Sprintf("%s, plan %s", path, name), p)
		ran += n
		p.Close()
	}
	return ran
}

// comparePoisoned does that for an open program, and counts the blocks of working memory in its plans.
func comparePoisoned(t *testing.T, name string, p *etrun.Program) (ran, blocks int) {
	t.Helper()
	for _, method := range p.MethodNames() {
		want, n, err := outputsOf(p, method, nil)
		blocks += n
		for _, poison := range []byte{0xAA, 0xFF} { // 0xFF: NaN
			got, _, poisonedErr := outputsOf(p, method, &poison)
			if (err == nil) != (poisonedErr == nil) || !slices.Equal(got, want) {
				t.Errorf("%s, method %s, poison %#x: got %.40x…, %v, want %.40x…, %v", name, method, poison, got, poisonedErr, want, err)
			}
		}
		if err == nil {
			ran++
		}
	}
	return ran, blocks
}

// TestPoisonedRegions compares runs with and without overwritten dead bytes where the plan has places
// for the working memory of delegates: all regions are lowered to the Go engine. If the variable CORPUS
// names a folder, its models are added.
func TestPoisonedRegions(t *testing.T) {
	programs := portablePrograms(t)
	for _, name := range corpusModels(t) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		programs[name] = data
	}
	blocks, ran := 0, 0
	for name, data := range programs {
		for plan, mode := range everyPlan {
			p, err := etrun.Parse(data, etrun.WithPlan(mode), etrun.WithReusableInputs(), etrun.WithThreads(1), etrun.WithLowering(etrun.LowerAll),
				etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo}))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			n, b := comparePoisoned(t, fmt.Sprintf("%s, plan %s", name, plan), p)
			ran, blocks = ran+n, blocks+b
			p.Close()
		}
	}
	if blocks < 1000 || ran < len(programs) {
		t.Errorf("%d programs: %d methods ran; %d blocks of working memory in all plans, want at least 1000", len(programs), ran, blocks)
	}
}

// outputsOf loads a method, runs it twice with the same inputs, dead bytes overwritten unless poison is nil, and returns the outputs of
// both runs, and how many blocks of working memory its plan has.
func outputsOf(p *etrun.Program, name string, poison *byte) (outputs []string, blocks int, err error) {
	m, err := p.Load(context.Background(), name)
	if err != nil {
		return nil, 0, err
	}
	defer m.Close()
	plan := m.Report().Plan
	blocks = len(plan.Items) - len(plan.Method.Storages)
	ctx := context.Background()
	if poison != nil {
		g := exectest.NewGuard(plan, *poison)
		if err := m.Observe(g); err != nil {
			return nil, 0, err
		}
		defer func() { err = errors.Join(err, g.Fault) }()
		ctx = g
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2 {
		for i, in := range m.Meta().Inputs {
			if x := in.NewTensor(); x != nil {
				if err := m.SetInput(i, smallRandom(r, x)); err != nil {
					return nil, 0, err
				}
			}
		}
		if err := m.Execute(ctx); err != nil {
			return nil, 0, err
		}
		for i := range m.NumOutputs() {
			out, err := m.Output(i)
			if err != nil {
				return nil, 0, err
			}
			if out.Kind == tensor.KindTensor {
				outputs = append(outputs, string(out.Tensor.Data))
			}
		}
	}
	return outputs, blocks, nil
}

// smallRandom returns a tensor like t of floats below 1 or integers below 2.
func smallRandom(r *rand.Rand, t *tensor.Tensor) *tensor.Tensor {
	x := tensor.New(t.DType, t.Sizes...)
	for k := range x.Data {
		switch b := byte(r.Uint32()); {
		case x.DType.IsFloat():
			x.Data[k] = b & 0x3f
		case k%x.DType.Size() == 0:
			x.Data[k] = b & 1
		}
	}
	return x
}
