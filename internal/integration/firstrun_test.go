//go:build linux

package integration

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var (
	firstRuns   = flag.String("first-runs", "", "measure the first runs of the programs in these `folders`, separated by colons")
	firstMatch  = flag.String("first-match", "xnnpack*.pte", "`pattern` of the names of programs for -first-runs")
	firstCache  = flag.String("first-cache", "", "`folder` of packed weights for -first-runs")
	firstStages = flag.String("first-stages", "", "measure the stages of this `program` and print them as JSON")
)

const (
	firstProcesses = 3 // of each program; the figures are medians
	laterRuns      = 9
	firstFactor    = 1.5
	firstLeast     = time.Millisecond // of later runs: shorter ones are not judged
)

// stages is the processor time of a process, of all threads, and its memory.
type stages struct {
	Load, First, Later time.Duration
	Anonymous          int // in KiB, after the first run
}

// TestFirstRuns measures the processor time of loads, first runs and later runs of programs, each in a process of its own, and the
// anonymous memory after the first run. A first run must not take more than firstFactor of a later one: all work on constants is in
// the load. Programs with inputs of other sizes than declared, files in0.bin and so on next to them, run with those sizes.
func TestFirstRuns(t *testing.T) {
	if *firstStages != "" {
		printStages(t, *firstStages)
		return
	}
	if *firstRuns == "" {
		t.Skip("-first-runs names the folders of programs; make firstruns sets it")
	}
	for _, path := range firstPrograms(t) {
		s, err := measureStages(path)
		if err != nil {
			fmt.Printf("not measured: %s: %v\n", path, err)
			continue
		}
		note := ""
		if ratio := float64(s.First) / float64(max(s.Later, 1)); ratio > firstFactor && s.Later > firstLeast {
			note = fmt.Sprintf(" the first run takes %.2f of a later one", ratio)
			t.Fail()
		}
		fmt.Printf("load %8.2f, first run %8.2f, later %8.2f ms, %6d KiB %s%s\n", ms(s.Load), ms(s.First), ms(s.Later), s.Anonymous, path, note)
	}
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// firstPrograms returns the programs of -first-runs.
func firstPrograms(t *testing.T) (list []string) {
	for _, folder := range strings.Split(*firstRuns, ":") {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if ok, _ := filepath.Match(*firstMatch, filepath.Base(path)); ok {
				list = append(list, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// measureStages returns the medians of several processes. Programs that need data files, or inputs other than zeros, return an error.
func measureStages(path string) (stages, error) {
	var all []stages
	for range firstProcesses {
		c := exec.Command(os.Args[0], "-test.run", "^TestFirstRuns$", "-first-stages", path, "-first-cache", *firstCache)
		out, err := c.Output()
		var s stages
		line, rest, _ := strings.Cut(string(out), "\n")
		if err == nil {
			err = json.Unmarshal([]byte(line), &s)
		}
		if err != nil {
			return s, fmt.Errorf("%w: %s", err, strings.TrimSpace(rest))
		}
		all = append(all, s)
	}
	return stages{medianOf(all, func(s stages) time.Duration { return s.Load }), medianOf(all, func(s stages) time.Duration { return s.First }),
		medianOf(all, func(s stages) time.Duration { return s.Later }), medianOf(all, func(s stages) int { return s.Anonymous })}, nil
}

func medianOf[S any, T cmp.Ordered](list []S, of func(S) T) T {
	var values []T
	for _, x := range list {
		values = append(values, of(x))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// printStages measures a program in this process.
func printStages(t *testing.T, path string) {
	var s stages
	at := processorTime()
	lap := func() time.Duration {
		last := at
		at = processorTime()
		return at - last
	}
	x := xnnpack.Backend{Library: xnntest.Path(), WeightsCache: *firstCache, MapWeights: *firstCache != ""}
	p, err := etrun.Open(path, etrun.WithDelegates(x, ethosu.Backend{}), etrun.WithThreads(1), etrun.WithLowering(etrun.LowerAuto))
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.Load(context.Background(), p.Spec().Methods[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	s.Load = lap()
	for i, in := range m.Meta().Inputs {
		if in.Kind != tensor.KindTensor {
			continue
		}
		x := tensor.New(in.DType, firstSizes(path, i, in)...)
		if err := m.SetInput(i, x); err != nil {
			t.Fatal(err)
		}
	}
	lap()
	run := func() {
		if err := m.Execute(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	run()
	s.First = lap()
	s.Anonymous = anonymous(t)
	var later []time.Duration
	for range laterRuns {
		lap()
		run()
		later = append(later, lap())
	}
	s.Later = medianOf(later, func(d time.Duration) time.Duration { return d })
	json.NewEncoder(os.Stdout).Encode(s)
}

// firstSizes returns the sizes of an input: of the file in0.bin, …, next to the program, if they are declared sizes of which at most
// one is smaller.
func firstSizes(path string, i int, in etrun.ValueMeta) []int {
	info, err := os.Stat(filepath.Join(filepath.Dir(path), fmt.Sprintf("in%d.bin", i)))
	if err != nil {
		return in.Sizes
	}
	all := in.DType.Size()
	for _, d := range in.Sizes {
		all *= d
	}
	for k, d := range in.Sizes {
		if n := int(info.Size()) * d / all; n > 0 && n < d && n*(all/d) == int(info.Size()) {
			sizes := slices.Clone(in.Sizes)
			sizes[k] = n
			return sizes
		}
	}
	return in.Sizes
}

// processorTime returns the time that the threads of this process have used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// anonymous returns the size of the process's memory that is not of files, in KiB.
func anonymous(t *testing.T) (kib int) {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "RssAnon:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
