//go:build linux

package integration

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var simulate = flag.String("simulate", "", "predict the times of these `programs` on several threads, separated by commas; FILE:ROWS@AT for "+
	"so many rows of varying sizes, and positions from AT on")

// handOver is what a divided loop takes in addition, see BenchmarkDo of hal/cpu.
const handOver = 2 * time.Microsecond

// TestSimulatedThreads predicts the speed of programs on more processors than there are: with so many threads, but each part of a
// loop alone, loops take their longest part and handOver. It prints the time of all parts on one thread, how many loops are divided,
// their share of the time, and the speed on 2, 4 and 8 threads.
func TestSimulatedThreads(t *testing.T) {
	if *simulate == "" {
		t.Skip("-simulate names the programs")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for program := range strings.SplitSeq(*simulate, ",") {
		line := "| " + filepath.Base(program) + " |"
		for _, threads := range []int{2, 4, 8} {
			s := simulated(t, program, threads)
			if threads == 2 {
				line += fmt.Sprintf(" %.3g ms | %d | %.1f %% |", ms(s.all), s.Loops, 100*float64(s.Divided)/float64(s.all))
			}
			line += fmt.Sprintf(" %.1f |", float64(s.all)/float64(s.predicted()))
		}
		fmt.Println(line)
	}
}

// timed is a run, with what its loops took.
type timed struct {
	cpu.Simulation
	all time.Duration
}

func (s *timed) predicted() time.Duration {
	return s.all - s.Divided + s.Longest + time.Duration(s.Loops)*handOver
}

// stopwatch is a clock whose readings follow each other in the same places of each run. Replayed, it has the shortest time between two
// of them in any run: what disturbs a run is not in it.
type stopwatch struct {
	least  []time.Duration
	at     int
	now    time.Duration
	replay bool
}

func (s *stopwatch) read() time.Duration {
	took := threadTime() - s.now
	switch {
	case s.at == len(s.least):
		s.least = append(s.least, took)
	case s.replay:
		s.now += s.least[s.at]
		s.at++
		return s.now
	default:
		s.least[s.at] = min(s.least[s.at], took)
	}
	s.at++
	s.now = threadTime()
	return s.now
}

// threadTime is what the processor has spent on this thread.
func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// simulated returns a run without disturbances.
func simulated(t *testing.T, program string, threads int) (s timed) {
	path, varied, _ := strings.Cut(program, ":")
	rows, at := 0, 0
	fmt.Sscanf(varied, "%d@%d", &rows, &at)
	p, err := etrun.Open(path, etrun.WithThreads(threads), etrun.WithMmap(), etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo}))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := p.Load(context.Background(), p.Spec().Methods[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for i, in := range m.Meta().Inputs {
		if err := m.SetInput(i, simulatedInput(in, rows, at)); err != nil {
			t.Fatal(err)
		}
	}
	var clock stopwatch
	run := func() {
		s = timed{Simulation: cpu.Simulation{Clock: clock.read}}
		cpu.Simulate(&s.Simulation)
		defer cpu.Simulate(nil)
		clock.at, clock.now = 0, threadTime()
		start := clock.read()
		if err := m.Execute(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.all = clock.read() - start
	}
	run()
	clock.least = nil // first runs are longer
	for begin := time.Now(); time.Since(begin) < 3*time.Second; {
		run()
	}
	clock.replay = true
	run()
	return s
}

// simulatedInput returns zeros, or positions from at on.
func simulatedInput(in etrun.ValueMeta, rows, at int) *tensor.Tensor {
	sizes := append([]int(nil), in.Sizes...)
	for d := range sizes {
		if rows > 0 && in.Dynamism != tensor.Static && sizes[d] > rows {
			sizes[d] = rows
		}
	}
	x := tensor.New(in.DType, sizes...)
	if in.DType == tensor.Int64 {
		for i := range tensor.Data[int64](x) {
			tensor.Data[int64](x)[i] = int64(at + i)
		}
	}
	return x
}
