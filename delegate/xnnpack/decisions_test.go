package xnnpack_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/ratetest"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

var (
	programsFlag = flag.String("measure-programs", "", "measure the XNNPACK programs below these folders, separated as in PATH, for TestDecisions")
	countFlag    = flag.String("count-programs", "", "count the loads of the measured programs again, which are below these folders, for TestDecisions")
)

// worst limits the loss of a single program. Exceptions have a limit of their own.
const worst = 1.25

var exceptions = map[string]float64{
	"avx2 dscnn/xnnpack": 1.4, // the Go engine's first convolution, of one channel, is ten products for each line
}

// shortest is the time from which programs are judged, in nanoseconds: shorter ones depend on more than the rates.
const shortest = 20000

// TestDecisions compares the engine that the rates choose for each payload of many programs with the faster one, as
// measured on each instruction set. "make rates CORPUS=..." measures again.
func TestDecisions(t *testing.T) {
	if *programsFlag != "" {
		measurePrograms(t)
	}
	if *countFlag != "" {
		countPrograms(t)
	}
	for set, limit := range map[string]float64{"avx512": 1.03, "avx2": 1.04, "neon": 1.05, "neon_dotprod": 1.05, "neon_i8mm": 1.05} {
		data, err := os.ReadFile(filepath.Join(xnnpack.RatesFolder, set+"_programs.tsv"))
		if err != nil {
			t.Fatal(err)
		}
		sum, count := 0.0, 0
		for line := range strings.Lines(string(data)) {
			f := strings.Split(strings.TrimSpace(line), "\t")
			var library, inGo float64
			fmt.Sscan(f[1]+" "+f[2], &library, &inGo)
			if min(library, inGo) < shortest {
				continue
			}
			chosen := library
			if xnnpack.PrefersGo(set, f[3]) {
				chosen = inGo
			}
			loss := chosen / min(library, inGo)
			if loss > max(worst, exceptions[set+" "+f[0]]) {
				t.Errorf("%s, %s: %.0f ns in the library, %.0f in Go: the chosen engine takes %.2f times as long", set, f[0], library, inGo, loss)
			}
			sum, count = sum+math.Log(loss), count+1
		}
		mean := math.Exp(sum / float64(count))
		t.Logf("%s: time over that of the faster engine %.3f in the geometric mean over %d programs", set, mean, count)
		if mean > limit {
			t.Errorf("%s: %.3f, want at most %v", set, mean, limit)
		}
	}
}

// payloads records the loads of the payloads that a program compiles, with the tiles of an instruction set.
type payloads struct {
	xnnpack.Backend
	set  string
	list *[]string
}

func (p payloads) Compile(ctx context.Context, x *delegate.Payload) (delegate.Image, error) {
	*p.list = append(*p.list, xnnpack.Loads(p.set, x))
	return p.Backend.Compile(ctx, x)
}

func (p payloads) Open(x *delegate.Payload) (lowering.Opened, error) {
	*p.list = append(*p.list, xnnpack.Loads(p.set, x))
	return p.Backend.Open(x)
}

// measurePrograms writes the times and loads of programs, for the instruction set of this processor.
func measurePrograms(t *testing.T) {
	var b bytes.Buffer
	for _, folder := range filepath.SplitList(*programsFlag) {
		files, err := filepath.Glob(filepath.Join(folder, "*", "*xnnpack*.pte"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := filepath.Base(filepath.Dir(file)) + "/" + strings.TrimSuffix(filepath.Base(file), ".pte")
			if line := measureProgram(t, file); line != "" {
				fmt.Fprintf(&b, "%s\t%s\n", name, line)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(xnnpack.RatesFolder, xnnpack.InstructionSet()+"_programs.tsv"), b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// countPrograms counts the loads of the measured programs of all instruction sets, after a change of what the cost model counts.
// The times remain.
func countPrograms(t *testing.T) {
	tables, err := filepath.Glob(filepath.Join(xnnpack.RatesFolder, "*_programs.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		data, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		for line := range strings.Lines(string(data)) {
			f := strings.Split(strings.TrimSpace(line), "\t")
			if loads := countProgram(t, f[0], strings.TrimSuffix(filepath.Base(table), "_programs.tsv")); loads != "" {
				f[3] = loads
			} else {
				t.Logf("%s: %s is not counted", table, f[0])
			}
			fmt.Fprintln(&b, strings.Join(f, "\t"))
		}
		if err := os.WriteFile(table, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// countProgram returns the loads of a program of -count-programs, "" if it is not found or does not run.
func countProgram(t *testing.T, name, set string) string {
	for _, folder := range filepath.SplitList(*countFlag) {
		file := filepath.Join(folder, name+".pte")
		if _, err := os.Stat(file); err != nil {
			continue
		}
		var list []string
		if programRunner(t, file, payloads{xnnpack.Backend{Engine: xnnpack.EngineGo}, set, &list}) == nil {
			return ""
		}
		return strings.Join(list, ";")
	}
	return ""
}

// measureProgram returns the times of a program on both engines, the loads of its payloads and how many other instructions
// it has; "" for one without payloads and one that an engine does not run.
func measureProgram(t *testing.T, file string) string {
	var runs []ratetest.Run
	var list []string
	for _, engine := range []xnnpack.Engine{xnnpack.EngineNative, xnnpack.EngineGo} {
		list = nil
		run := programRunner(t, file, payloads{xnnpack.Backend{Engine: engine, Library: xnntest.Path()}, xnnpack.InstructionSet(), &list})
		if run == nil {
			return ""
		}
		runs = append(runs, run)
	}
	ns, err := ratetest.Measure(runs...)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f\t%.0f\t%s\t%d", ns[0], ns[1], strings.Join(list, ";"), otherInstructions(t, file))
}

// otherInstructions returns how many instructions of the program do not call a delegate.
func otherInstructions(t *testing.T, file string) (n int) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pte.Parse(data, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, chain := range p.Methods[0].Chains {
		for _, i := range chain.Instructions {
			if i.Kind != pte.DelegateCall {
				n++
			}
		}
	}
	return n
}

// programRunner returns a function that runs a program n times, nil if it cannot run.
func programRunner(t *testing.T, file string, b delegate.Backend) ratetest.Run {
	p, err := etrun.Open(file, etrun.WithThreads(1), etrun.WithLowering(etrun.LowerOff), etrun.WithDelegates(b))
	if err != nil {
		return nil
	}
	t.Cleanup(func() { p.Close() })
	ctx := context.Background()
	m, err := p.Load(ctx, "")
	if err != nil {
		return nil
	}
	t.Cleanup(func() { m.Close() })
	r := rand.New(rand.NewPCG(1, 1))
	for k, in := range m.Meta().Inputs {
		x := in.NewTensor()
		if in.Kind == tensor.KindTensor && in.DType.IsFloat() {
			x = kerneltest.Noise(r, in.DType, in.Sizes, nil)
		}
		if x != nil && m.SetInput(k, x) != nil {
			return nil
		}
	}
	if m.Execute(ctx) != nil {
		return nil
	}
	return func(n int) {
		for range n {
			if err := m.Execute(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}
