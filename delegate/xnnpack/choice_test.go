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
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var measureChoice = flag.String("measure-choice", "", "measure the XNNPACK programs below these folders, separated as in PATH, for TestChoice")

// choiceFolder has a table for each instruction set: where it was measured, and a line for each program with its name, its
// nanoseconds in the library and in the Go engine, and what its payloads compute.
const choiceFolder = "testdata/choice"

// shortest is the time from which single programs are judged, in nanoseconds.
const shortest = 20000

// TestChoice compares the engine that is chosen for each payload of many programs with the faster one, as measured on each
// instruction set. "make choice CORPUS=folder" measures again.
func TestChoice(t *testing.T) {
	if *measureChoice != "" {
		measurePrograms(t)
	}
	tables, err := filepath.Glob(filepath.Join(choiceFolder, "*.tsv"))
	if err != nil || len(tables) < 5 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	for _, table := range tables {
		data, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		set := strings.TrimSuffix(filepath.Base(table), ".tsv")
		var losses, long []float64
		for line := range strings.Lines(string(data)) {
			f := strings.Split(strings.TrimSpace(line), "\t")
			if len(f) < 4 {
				continue
			}
			loss := lossOf(t, f, set == "amx")
			losses = append(losses, loss)
			if atLeast(t, f, shortest) {
				long = append(long, loss)
				if loss > 1.5 {
					t.Errorf("%s, %s: %s ns in the library, %s in Go: the chosen engine takes %.2f times as long", set, f[0], f[1], f[2], loss)
				}
			}
		}
		all, of := geometricMean(losses), geometricMean(long)
		t.Logf("%s: time over that of the faster engine %.3f over %d programs, %.3f over the %d of at least %v", set, all, len(losses), of, len(long),
			time.Duration(shortest))
		if all > 1.08 || of > 1.04 {
			t.Errorf("%s: %.3f and %.3f, want at most 1.08 and 1.04", set, all, of)
		}
	}
}

// lossOf returns the time of a program on the engines that are chosen, over that of the faster one. A program is in Go if one of
// its payloads is.
func lossOf(t *testing.T, f []string, tiles bool) float64 {
	library, inGo := floatOf(t, f[1]), floatOf(t, f[2])
	for p := range strings.SplitSeq(f[3], ";") {
		count, ofBytes := strings.CutSuffix(p, "b")
		if xnnpack.WhyGo(floatOf(t, count), ofBytes, tiles) != "" {
			return inGo / min(library, inGo)
		}
	}
	return library / min(library, inGo)
}

func atLeast(t *testing.T, f []string, ns float64) bool {
	return min(floatOf(t, f[1]), floatOf(t, f[2])) >= ns
}

func floatOf(t *testing.T, text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func geometricMean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(list)))
}

// counted records what the payloads of a program compute.
type counted struct {
	xnnpack.Backend
	list *[]string
}

func (c counted) Compile(ctx context.Context, p *delegate.Payload) (delegate.Image, error) {
	*c.list = append(*c.list, xnnpack.CountPayload(p))
	return c.Backend.Compile(ctx, p)
}

func (c counted) Open(p *delegate.Payload) (lowering.Opened, error) {
	*c.list = append(*c.list, xnnpack.CountPayload(p))
	return c.Backend.Open(p)
}

// measurePrograms writes the table of this processor.
func measurePrograms(t *testing.T) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s, %s, %s\n", cpu.Processor(), time.Now().Format("January 2006"), filepath.Base(xnntest.Path()))
	for _, folder := range filepath.SplitList(*measureChoice) {
		files, err := filepath.Glob(filepath.Join(folder, "*", "*xnnpack*.pte"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := filepath.Base(filepath.Dir(file)) + "/" + strings.TrimSuffix(filepath.Base(file), ".pte")
			var list []string
			library := runner(t, file, xnnpack.Backend{Engine: xnnpack.EngineNative, Library: xnntest.Path()})
			inGo := runner(t, file, counted{xnnpack.Backend{Engine: xnnpack.EngineGo}, &list})
			if library == nil || inGo == nil || len(list) == 0 {
				continue
			}
			ns := shortestTimes(library, inGo)
			fmt.Fprintf(&b, "%s\t%.0f\t%.0f\t%s\n", name, ns[0], ns[1], strings.Join(list, ";"))
		}
	}
	set := simd.Level()
	if cpu.ReadHardware().AMXInt8 {
		set = "amx"
	} else if set == "neon" && slices.Contains(cpu.Features(), cpu.Feature{Name: "asimddp", Has: true}) {
		set = "neon_dotprod"
	}
	if err := os.WriteFile(filepath.Join(choiceFolder, set+".tsv"), b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// shortestTimes returns the shortest time of each run in nanoseconds, measured in turns.
func shortestTimes(runs ...func()) (ns [2]float64) {
	const rounds, batch = 40, 150 * time.Microsecond
	var counts [2]int
	for i, run := range runs {
		ns[i] = math.Inf(1)
		begun := time.Now()
		run()
		counts[i] = 1 + int(batch/(time.Since(begun)+1))
	}
	for range rounds {
		for i, run := range runs {
			begun := time.Now()
			for range counts[i] {
				run()
			}
			ns[i] = min(ns[i], float64(time.Since(begun))/float64(counts[i]))
		}
	}
	return ns
}

// runner returns a function that runs a program, nil if it cannot run.
func runner(t *testing.T, file string, b delegate.Backend) func() {
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
	for range 2 {
		if m.Execute(ctx) != nil {
			return nil
		}
	}
	return func() {
		if err := m.Execute(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
