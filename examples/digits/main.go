// Command digits classifies handwritten digits with a network trained in PyTorch, on every
// available engine, and compares the results with PyTorch's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// engines are the programs and the engines that run them.
var engines = []struct {
	name, program string
	options       []etrun.Option
}{
	{"portable operators", "portable.pte", nil},
	{"XNNPACK, native", "xnnpack.pte", []etrun.Option{engine(xnnpack.EngineNative)}},
	{"XNNPACK, in Go", "xnnpack.pte", []etrun.Option{engine(xnnpack.EngineGo)}},
}

func engine(e xnnpack.Engine) etrun.Option {
	return etrun.WithDelegates(xnnpack.Backend{Engine: e})
}

const (
	pixels  = 8 * 8
	classes = 10
)

func main() {
	folder := flag.String("data", "testdata/digits", "folder of the programs and images")
	flag.Parse()
	if err := run(*folder, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "digits:", err)
		os.Exit(1)
	}
}

// data is the test set with PyTorch's results.
type data struct {
	images []float32 // [n,1,8,8]
	labels []byte
	logits []float32 // [n,10]
}

func load(folder string) (*data, error) {
	var files [3][]byte
	for i, name := range []string{"images.f32.bin", "labels.u8.bin", "logits.f32.bin"} {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		files[i] = tensor.AlignedBytes(len(b))
		copy(files[i], b)
	}
	d := &data{tensor.View[float32](files[0]), files[1], tensor.View[float32](files[2])}
	if n := len(d.labels); len(d.images) != n*pixels || len(d.logits) != n*classes {
		return nil, fmt.Errorf("%s: %d labels, %d pixels and %d logits do not match", folder, n, len(d.images), len(d.logits))
	}
	return d, nil
}

func run(folder string, w io.Writer) error {
	d, err := load(folder)
	if err != nil {
		return err
	}
	n := len(d.labels)
	pytorch := d.accuracy(d.logits)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "%d handwritten digits\taccuracy\tworst logit error\tmedian latency\n", n)
	fmt.Fprintf(t, "PyTorch\t%d of %d\t\t\n", pytorch, n)
	ran := 0
	var absent []string
	for _, e := range engines {
		logits, median, err := classify(d, filepath.Join(folder, e.program), e.options)
		if errors.Is(err, etrun.ErrMissing) && ran > 0 {
			fmt.Fprintf(t, "%s\tnot available\t\t\n", e.name)
			absent = append(absent, fmt.Sprintf("%s: %v", e.name, reason(err)))
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		ran++
		right := d.accuracy(logits)
		fmt.Fprintf(t, "%s\t%d of %d\t%.1e\t%v\n", e.name, right, n, distance(logits, d.logits), median)
		if right != pytorch {
			return fmt.Errorf("%s: %d of %d correct, PyTorch has %d", e.name, right, n, pytorch)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, why := range absent {
		fmt.Fprintln(w, why)
	}
	return nil
}

// reason returns the details of a backend's error, without its place in the program.
func reason(err error) error {
	if e, ok := errors.AsType[*delegate.Error](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}

// classify runs the network on each image. Every call after the first is timed.
func classify(d *data, path string, options []etrun.Option) (logits []float32, median time.Duration, err error) {
	prog, err := etrun.Open(path, append([]etrun.Option{etrun.WithDelegates(all.Backends()...)}, options...)...)
	if err != nil {
		return nil, 0, err
	}
	defer prog.Close()
	ctx := context.Background()
	m, err := prog.Load(ctx, "forward")
	if err != nil {
		return nil, 0, err
	}
	defer m.Close()
	var took []time.Duration
	for i := range d.labels {
		begun := time.Now()
		scores, err := etrun.Run[float32](ctx, m, d.images[i*pixels:(i+1)*pixels])
		if err != nil {
			return nil, 0, err
		}
		took = append(took, time.Since(begun))
		logits = append(logits, scores...)
	}
	slices.Sort(took)
	return logits, took[len(took)/2].Round(100 * time.Nanosecond), nil
}

// accuracy counts the images whose largest logit is that of their label.
func (d *data) accuracy(logits []float32) (right int) {
	for i, label := range d.labels {
		row := logits[i*classes : (i+1)*classes]
		if slices.Index(row, slices.Max(row)) == int(label) {
			right++
		}
	}
	return right
}

func distance(a, b []float32) (worst float64) {
	for i := range a {
		worst = max(worst, math.Abs(float64(a[i]-b[i])))
	}
	return worst
}
