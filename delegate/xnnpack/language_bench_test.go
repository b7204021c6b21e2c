package xnnpack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/internal/cputime"
	"github.com/etrun-go/etrun/runtime/trace"
)

// envLanguage names the variable with the path of the model for a process of BenchmarkLanguageModel.
const envLanguage = "ETRUN_LANGUAGE_MODEL"

// decoder runs a language model token by token.
type decoder struct {
	t       testing.TB
	program *etrun.Program
	method  *etrun.Method
	first   int64 // the token at position 0
}

func openDecoder(t testing.TB, path string, engine Engine, threads int, more ...etrun.Option) *decoder {
	t.Helper()
	options := append([]etrun.Option{etrun.WithDelegates(Backend{Engine: engine, Library: xnntest.Path()}), etrun.WithThreads(threads)}, more...)
	p, err := etrun.Open(path, options...)
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.Load(context.Background(), "")
	SkipFault(t, err)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close(); p.Close() })
	return &decoder{t: t, program: p, method: m}
}

// step runs n tokens at a position and returns the wall time and the CPU time.
func (d *decoder) step(position, n int) (wall, processor time.Duration) {
	tokens := make([]int64, n)
	for i := range tokens {
		tokens[i] = int64(position+i) % 90
	}
	if position == 0 {
		tokens[0] = d.first
	}
	if err := errors.Join(etrun.Set(d.method, 0, tokens, 1, n), etrun.Set(d.method, 1, []int64{int64(position)}, 1)); err != nil {
		d.t.Fatal(err)
	}
	began, used := time.Now(), cputime.Process()
	if err := d.method.Execute(context.Background()); err != nil {
		d.t.Fatal(err)
	}
	return time.Since(began), cputime.Process() - used
}

func (d *decoder) logits() []float32 {
	list, err := etrun.Get[float32](d.method, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	return list
}

// TestLanguageModel checks that prompts have the same logits in one step, in several, and on the Go
// engine.
func TestLanguageModel(t *testing.T) {
	xnntest.Library(t)
	for name, model := range map[string]languageModel{"plain": smallLanguageModel, "windowed": windowedModel} {
		path, wants := model.write(t), make(map[int][]float32)
		for _, c := range []struct {
			engine  Engine
			threads int
			steps   []int
		}{{EngineGo, 1, []int{3, 3}}, {EngineGo, 1, []int{1, 3, 2}}, {EngineNative, 1, []int{3, 3}}, {EngineNative, 2, []int{1, 1, 1, 1, 1, 1}},
			{EngineNative, 1, []int{1, 3, 2}}, {EngineNative, 2, []int{2, 3, 1}}, {EngineGo, 1, []int{6}}, {EngineNative, 1, []int{6}},
			{EngineGo, 1, []int{3, 3, 3, 3, 3, 3, 3, 3, 3, 3}}, {EngineNative, 2, slices.Repeat([]int{1}, 30)}} {
			if model.window > 0 && slices.Max(c.steps) >= model.window {
				continue
			}
			t.Run(fmt.Sprint(name, " ", c.engine, " ", c.threads, " ", c.steps), func(t *testing.T) {
				d, position := openDecoder(t, path, c.engine, c.threads), 0
				for _, n := range c.steps {
					d.step(position, n)
					position += n
				}
				got, want := slices.Clone(d.logits()), wants[position]
				if want == nil {
					wants[position], want = got, got
				}
				var noise, signal float64
				for i := range got {
					noise += math.Pow(float64(got[i]-want[i]), 2)
					signal += math.Pow(float64(want[i]), 2)
				}
				// Reciprocal square roots of the library, which the windowed model has in its delegates, differ from processor to processor in
				// the last bit, which can move a quantized activation by one step in 255.
				most := 1e-4
				if c.engine == EngineNative && model.headNorms {
					most = 0.005
				}
				if ratio := math.Sqrt(noise / signal); !(ratio <= most) {
					t.Errorf("logits differ by %.3f %% of their magnitude, want at most %g %%: got %v, want %v", 100*ratio, 100*most, got, want)
				}
			})
		}
	}
}

// TestLanguageModelWindows changes the first token of a text: each layer passes it on to the positions that its window reaches, no further.
func TestLanguageModelWindows(t *testing.T) {
	model := windowedModel
	model.layers = 3
	path := model.write(t)
	a, b := openDecoder(t, path, EngineGo, 1), openDecoder(t, path, EngineGo, 1)
	b.first = 5
	reach := model.layers * (model.window - 1)
	for position := range model.tokens {
		a.step(position, 1)
		b.step(position, 1)
		got, want := slices.Equal(a.logits(), b.logits()), position > reach
		if got != want && (want || position < model.window) { // quantization may hide what is left at the end of the reach
			t.Errorf("position %d, reach %d: same logits %v, want %v", position, reach, got, want)
		}
	}
}

// BenchmarkLanguageModel writes a model of 90 MB and decodes with it in its own process. The metrics
// are medians. All but the first two are ratios:
//
//	peak-MB       peak memory after a prompt of 8 tokens and a decode step
//	decode-ms     CPU time of a decode step with one thread
//	peak/file     peak memory without the caches, divided by the file size
//	after-prompt  CPU time of the first decode step after a prompt, divided by that of later steps
//	threads-2/1   time of a decode step with two threads, divided by that with one
//	views-%       views, as part of a decode step
//	portable-%    operators except attention, as part of a decode step
//	attention-%   attention, as part of a decode step
func BenchmarkLanguageModel(b *testing.B) {
	xnntest.Library(b)
	path := largeLanguageModel.write(b)
	metrics := make(map[string][]float64)
	for b.Loop() {
		c := exec.Command(os.Args[0], "-test.run=^TestDecodeProcess$", "-test.v")
		c.Env = append(os.Environ(), envLanguage+"="+path)
		if lib := xnntest.Path(); lib != "" {
			c.Env = append(c.Env, xnn.EnvPath+"="+lib)
		}
		out, err := c.CombinedOutput()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			var name string
			var x float64
			if n, _ := fmt.Sscanf(line, "metric %s %g", &name, &x); n == 2 {
				metrics[name] = append(metrics[name], x)
			}
		}
	}
	if len(metrics) == 0 {
		b.Fatal("no metrics")
	}
	for name, list := range metrics {
		b.ReportMetric(middle(list), name)
	}
	b.ReportMetric(0, "ns/op")
}

func middle[T float64 | time.Duration](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}

// TestDecodeProcess runs only as a process of BenchmarkLanguageModel. It prints the metrics.
func TestDecodeProcess(t *testing.T) {
	path := os.Getenv(envLanguage)
	if path == "" {
		t.Skip("runs in a process of BenchmarkLanguageModel")
	}
	one := openDecoder(t, path, EngineNative, 1)
	one.step(0, 8)
	one.step(8, 1)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	peak := float64(peakBytes(t))
	metric("peak-MB", peak/1e6)
	metric("peak/file", (peak-float64(largeLanguageModel.cacheBytes()))/float64(info.Size()))
	runtime.GC()
	afterPrompt(one)
	compareThreads(one, openDecoder(t, path, EngineNative, 2))
	shares(t, path)
}

func metric(name string, x float64) { fmt.Printf("metric %s %g\n", name, x) }

func peakBytes(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes int64
	if _, err := fmt.Sscan(after, &kilobytes); err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// afterPrompt alternates prompts and decode steps and compares the first step with later ones.
func afterPrompt(d *decoder) {
	var first, later []time.Duration
	for range 15 {
		d.step(0, 32)
		_, used := d.step(32, 1)
		first = append(first, used)
		for i := range 4 {
			_, used := d.step(33+i, 1)
			later = append(later, used)
		}
	}
	metric("decode-ms", middle(later).Seconds()*1e3)
	metric("after-prompt", middle(first).Seconds()/middle(later).Seconds())
}

// compareThreads alternates decode steps with one and two threads in the order ABBA.
func compareThreads(one, two *decoder) {
	two.step(0, 32)
	two.step(32, 1)
	var ratios []float64
	for range 25 {
		a, _ := one.step(33, 1)
		b, _ := two.step(33, 1)
		c, _ := two.step(33, 1)
		d, _ := one.step(33, 1)
		ratios = append(ratios, float64(b+c)/float64(a+d))
	}
	metric("threads-2/1", middle(ratios))
}

// shares measures the parts of decode steps with an observer.
func shares(t *testing.T, path string) {
	var views, attention, portable, all []time.Duration
	at := func(list []time.Duration) *time.Duration { return &list[len(list)-1] }
	observer := trace.Func{Kinds: trace.Instructions, Do: func(e *trace.Event) {
		*at(all) += e.Duration()
		switch {
		case e.Kind != trace.Operator:
		case strings.Contains(e.Name, "sdpa"):
			*at(attention) += e.Duration()
		case strings.Contains(e.Name, "et_view"):
			*at(views) += e.Duration()
			fallthrough
		default:
			*at(portable) += e.Duration()
		}
	}}
	begin := func() {
		for _, list := range []*[]time.Duration{&views, &attention, &portable, &all} {
			*list = append(*list, 0)
		}
	}
	begin()
	d := openDecoder(t, path, EngineNative, 1, etrun.WithObserver(observer))
	d.step(0, 32)
	for i := range 40 {
		begin()
		d.step(32+i, 1)
	}
	total := middle(all[2:]).Seconds() / 100
	metric("views-%", middle(views[2:]).Seconds()/total)
	metric("portable-%", middle(portable[2:]).Seconds()/total)
	metric("attention-%", middle(attention[2:]).Seconds()/total)
}
