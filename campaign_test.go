//go:build linux

package etrun_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnnguard"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// Limits on the programs of a campaign.
const (
	campaignMemory = 64 << 20
	campaignTime   = 5 * time.Second
	largestSeed    = 256 << 10 // of the corpus's programs
)

// TestPrograms loads and runs whole programs with modified fields or bytes, half of them lowered,
// with every backend. The native engine is used if the library supports their graphs; its memory is
// between inaccessible pages.
func TestPrograms(t *testing.T) {
	c := &campaign.Campaign{Test: "TestPrograms", Usual: 300, Memory: campaignMemory + 64<<20,
		Counters: []string{"programs", "refused", "calls"}, Start: startPrograms}
	c.Run(t)
}

func startPrograms(t *testing.T, p *campaign.Process) func(seed uint64) error {
	if lib, err := xnn.Open(xnntest.Path()); err == nil {
		err = xnnguard.Install(lib)
		t.Log("guard of the library: ", err)
	}
	seeds := seedPrograms(t)
	for _, name := range campaign.Corpus(".pte") {
		if data, err := os.ReadFile(name); err == nil && len(data) <= largestSeed {
			seeds = append(seeds, data)
		}
	}
	return func(seed uint64) error {
		r := rand.New(rand.NewPCG(seed, 9))
		data, _ := ptetest.Mutate(seeds[r.IntN(len(seeds))], seed, 1+r.IntN(4))
		xnnguard.Set(xnnguard.Options{Poison: byte(seed), Underrun: seed%3 == 0})
		p.Count(0, 1)
		calls, err := runProgram(data, seed)
		p.Count(2, calls)
		if calls == 0 {
			p.Count(1, 1)
		}
		return err
	}
}

// runProgram loads the methods of a program and calls each twice. It counts the calls that
// complete; an error is a finding.
func runProgram(data []byte, seed uint64) (calls int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), campaignTime)
	defer cancel()
	lowering := []etrun.Lowering{etrun.LowerOff, etrun.LowerAuto}[seed%2]
	p, err := etrun.Parse(data, etrun.WithLowering(lowering), etrun.WithMinProfit(-1), etrun.WithLimits(etrun.Limits{PlannedBytes: campaignMemory, Instructions: 2000}),
		etrun.WithMaxMemory(campaignMemory), etrun.WithThreads(1),
		etrun.WithDelegates(xnnpack.Backend{Library: xnntest.Path()}, ethosu.Backend{}))
	if err != nil {
		return 0, classed(err)
	}
	defer p.Close()
	for _, name := range p.MethodNames()[:min(len(p.MethodNames()), 8)] {
		m, err := p.Load(ctx, name)
		if err != nil {
			if err := classed(err); err != nil {
				return calls, err
			}
			continue
		}
		for range 2 {
			if err = execute(ctx, m, seed); err != nil {
				break
			}
			calls++
		}
		if err := errors.Join(classed(err), m.Close()); err != nil {
			return calls, err
		}
	}
	return calls, nil
}

// classed returns nil for an error that a hostile program may cause, else a finding.
func classed(err error) error {
	if p, ok := errors.AsType[*etrun.PanicError](err); ok {
		return &campaign.Finding{Kind: "panic", Message: fmt.Sprintf("%v\n%s", err, p.Stack)}
	}
	for _, class := range []error{nil, etrun.ErrFormat, etrun.ErrUnsupported, etrun.ErrMissing, etrun.ErrInput, etrun.ErrMemory,
		etrun.ErrExecute, etrun.ErrDevice, context.DeadlineExceeded} {
		if errors.Is(err, class) {
			return nil
		}
	}
	return &campaign.Finding{Kind: "error", Message: err.Error()}
}
