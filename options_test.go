package etrun_test

import (
	"errors"
	"math"
	"testing"

	"github.com/etrun-go/etrun"
)

// An option whose value has no meaning is never taken for another: opening fails, and the error names it.
func TestOptionsWithoutMeaning(t *testing.T) {
	for want, list := range map[string][]etrun.Option{
		"WithLowering":  {etrun.WithLowering("aut"), etrun.WithLowering("")},
		"WithPlan":      {etrun.WithPlan(etrun.PlanNaive + 1)},
		"WithThreads":   {etrun.WithThreads(-1), etrun.WithThreads(1025), etrun.WithThreads(math.MaxInt)},
		"WithMaxMemory": {etrun.WithMaxMemory(-1)},
		"WithLimits":    {etrun.WithLimits(etrun.Limits{FileBytes: -1}), etrun.WithLimits(etrun.Limits{Format: etrun.FormatLimits{Values: -1}})},
	} {
		for i, o := range list {
			p, err := etrun.Open(stateProgram, o)
			if p != nil {
				p.Close()
			}
			if e, ok := errors.AsType[*etrun.OptionError](err); !ok || e.Option != want || !errors.Is(err, etrun.ErrInput) {
				t.Errorf("%s, value %d: got %v, want an *OptionError", want, i, err)
			}
		}
	}
}
