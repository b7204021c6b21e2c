//go:build linux

package integration

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/campaign"
)

var loweredTimes = flag.Bool("lowered-times", false, "measure the programs of the campaign's corpus, lowered to files and at load")

// TestLoweredFileTimes compares the times of programs that are lowered to files with those of the same programs lowered at load: the
// least of several rounds of each, alternately. It only reports.
func TestLoweredFileTimes(t *testing.T) {
	if !*loweredTimes {
		t.Skip("it measures: make loweredfiles CORPUS=folder")
	}
	for _, engine := range []xnnpack.Engine{xnnpack.EngineGo, xnnpack.EngineNative} {
		t.Run(string(engine), func(t *testing.T) {
			if engine == xnnpack.EngineNative {
				xnntest.Library(t)
			}
			reportTimes(t, xnnpack.Backend{Engine: engine})
		})
	}
}

// reportTimes logs the ratios of all programs on an engine.
func reportTimes(t *testing.T, by xnnpack.Backend) {
	var ratios []float64
	for _, path := range campaign.Corpus(".pte") {
		ratio, err := loweredFileTime(path, by)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if ratio > 0 {
			ratios = append(ratios, ratio)
			t.Logf("%s: %.3f of the time lowered at load", path, ratio)
		}
	}
	if slices.Sort(ratios); len(ratios) > 0 {
		t.Logf("%d programs: median %.3f, nine in ten below %.3f", len(ratios), ratios[len(ratios)/2], ratios[len(ratios)*9/10])
	}
}

// loweredFileTime returns 0 if nothing is lowered, or the program does not run.
func loweredFileTime(path string, by xnnpack.Backend) (ratio float64, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	result, err := lowerFileFor(by, data, false, false)
	if err != nil || !result.Lowered() {
		return 0, nil // it has a fault, or no region gains time
	}
	var methods [2]*etrun.Method
	for k, from := range [2][]byte{data, result.Data.Bytes()} {
		p, err := etrun.Parse(from, etrun.WithThreads(1), etrun.WithDelegates(by))
		if err != nil {
			return 0, err
		}
		defer p.Close()
		if methods[k], err = p.Load(context.Background(), p.MethodNames()[0]); err != nil {
			return 0, err
		}
		defer methods[k].Close()
	}
	return leastTimes(methods)
}

// leastTimes returns the least time of the second method as a ratio of that of the first.
func leastTimes(methods [2]*etrun.Method) (ratio float64, err error) {
	const rounds, least = 40, 200 * time.Microsecond
	best := [2]time.Duration{time.Hour, time.Hour}
	for range rounds {
		for k, m := range methods {
			if err := setRandomly(m, rand.New(rand.NewPCG(1, 7))); err != nil {
				return 0, err
			}
			runs := 0
			begun := time.Now()
			for ; runs == 0 || time.Since(begun) < least; runs++ {
				if err := m.Execute(context.Background()); err != nil {
					return 0, onlyInput(err)
				}
			}
			best[k] = min(best[k], time.Since(begun)/time.Duration(runs))
		}
	}
	return float64(best[1]) / float64(best[0]), nil
}

// onlyInput returns nil for inputs that do not fit the program, as random ones may.
func onlyInput(err error) error {
	if errors.Is(err, etrun.ErrInput) || errors.Is(err, etrun.ErrExecute) {
		return nil
	}
	return err
}
