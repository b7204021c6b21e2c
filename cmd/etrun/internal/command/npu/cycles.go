package npu

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

// npuCycles estimates the cycles of command streams.
type npuCycles struct {
	*cli.App
	session.Options
	memories []string // REGION=RATE[,LATENCY[,BURST]]
	clock    float64  // MHz
}

const cyclesHelp = `Estimate the cycles of each operation of Ethos-U delegates from their command streams:
the time of the MAC and output units, for the block sizes that the compiler chose, and
the time of the memory traffic. DMA runs in parallel with other operations, unless the
stream waits for it. The programs do not run.

The memory timings are the defaults of Vela; --memory sets others.
`

func newNPUCycles(a *cli.App) *cobra.Command {
	n := &npuCycles{App: a, Options: session.Options{Say: a.Note, Static: true}}
	c := &cobra.Command{
		Use:   "cycles MODEL.pte",
		Short: "Estimate the cycles of Ethos-U delegates",
		Long:  cyclesHelp,
		Example: "  etrun npu cycles model.pte\n  etrun npu cycles model.pte --memory constants=0.5,200 --clock 400\n" +
			"  etrun npu cycles model.pte --json | jq '.delegates[].cycles'",
		Args:              cli.OneModel,
		ValidArgsFunction: cli.CompleteModel,
		RunE:              func(c *cobra.Command, args []string) error { return n.run(c.Context(), args[0]) },
	}
	c.Flags().Var(session.Texts(&n.memories), "memory",
		"`REGION=RATE` of constants, scratch or fast, in bytes per cycle; optionally ,latency in cycles and ,burst in bytes; may be repeated")
	c.Flags().Float64Var(&n.clock, "clock", 0, "NPU clock in `MHZ`, to show times")
	n.AddFileFlags(c.Flags())
	return c
}

// memoryNames are the names of regions on the command line.
var memoryNames = map[string]isa.RegionKind{"constants": isa.Constants, "scratch": isa.Scratch, "fast": isa.Fast}

// regionOf is the region in which compilers place each kind of memory.
var regionOf = map[isa.RegionKind]int{isa.Constants: 0, isa.Scratch: 1, isa.Fast: 2}

// timings returns the memory timings of an NPU: the defaults, with those of the command line.
func (n *npuCycles) timings(f isa.Family, fast bool) (npu.Timings, error) {
	t := npu.DefaultTimings(f, fast)
	for _, text := range n.memories {
		name, values, ok := strings.Cut(text, "=")
		kind, known := memoryNames[name]
		if !ok || !known {
			return t, session.Usage("--memory %q, want REGION=RATE with one of constants, scratch, fast", text)
		}
		m := &t[regionOf[kind]]
		if err := parseTiming(m, values); err != nil {
			return t, session.Usage("--memory %q: %w", text, err)
		}
	}
	return t, nil
}

// parseTiming reads RATE[,LATENCY[,BURST]].
func parseTiming(m *npu.Timing, text string) (err error) {
	parts := strings.Split(text, ",")
	if len(parts) > 3 {
		return errors.New("want RATE,LATENCY,BURST")
	}
	if m.Rate, err = strconv.ParseFloat(parts[0], 64); err != nil || !(m.Rate > 0) || m.Rate > 1e6 {
		return fmt.Errorf("rate %q, want bytes per cycle", parts[0])
	}
	for i, to := range []*int{&m.Latency, &m.Burst} {
		if len(parts) <= i+1 {
			break
		}
		if *to, err = strconv.Atoi(parts[i+1]); err != nil || *to < 0 || *to > 1<<20 {
			return fmt.Errorf("%q, want a number up to %d", parts[i+1], 1<<20)
		}
	}
	return nil
}

func (n *npuCycles) run(ctx context.Context, path string) error {
	if n.clock < 0 {
		return session.Usage("--clock %v, want 0 or more", n.clock)
	}
	if _, err := n.timings(isa.U55, false); err != nil {
		return err
	}
	s, err := session.Open(ctx, path, &n.Options)
	if err != nil {
		return err
	}
	defer s.Close()
	r := cyclesReport{Schema: "etrun.cycles/1", Model: path, Delegates: []delegateCycles{}}
	err = Each(s, func(method string, k int, payload []byte) error {
		d, err := n.estimate(payload, s)
		d.Method, d.Delegate = method, k
		if err == nil {
			r.Delegates = append(r.Delegates, d)
		}
		return err
	})
	if err != nil {
		return err
	}
	if n.JSON {
		return n.WriteJSON(r)
	}
	for i := range r.Delegates {
		if err := r.Delegates[i].print(n.Out, n.clock); err != nil {
			return err
		}
	}
	return nil
}

// Each visits the Ethos-U delegates of a program. A program without any is a usage
// error.
func Each(s *session.Session, visit func(method string, k int, payload []byte) error) error {
	found := false
	for i := range s.Spec().Methods {
		m := &s.Spec().Methods[i]
		for k, d := range m.Delegates {
			if d.ID != ethosu.ID {
				continue
			}
			found = true
			if err := visit(m.Name, k, d.Data); err != nil {
				return fmt.Errorf("method %q: delegate %d: %w", m.Name, k, err)
			}
		}
	}
	if !found {
		return session.Usage("%s: no delegate for %s", s.Path, ethosu.ID)
	}
	return nil
}

// estimate computes the figures of a payload.
func (n *npuCycles) estimate(payload []byte, s *session.Session) (d delegateCycles, err error) {
	p, err := ethosu.Commands(payload, s)
	if err != nil {
		return d, err
	}
	program, err := npu.Decode(p.Config, p.Stream)
	if err != nil {
		return d, err
	}
	timings, err := n.timings(p.Config.Family, program.Footprint()[2] > 0)
	if err != nil {
		return d, err
	}
	costs := program.Costs(&timings)
	d = delegateCycles{NPU: p.Config.String(), Operations: []opCycles{}, Kinds: kindsOf(costs, &timings)}
	for i, span := range npu.Timeline(costs, &timings) {
		c := &costs[i]
		d.MACs += c.MACs
		d.Busy += float64(c.Cycles)
		d.Cycles = max(d.Cycles, span.End)
		d.Operations = append(d.Operations, opCycles{c.Word, operationName(c), c.Copy, c.MACs, c.Cycles, timings.Wait(c), span.Begin, span.End,
			byRegion(c.Read), byRegion(c.Write)})
	}
	if d.Cycles > 0 {
		d.Use = float64(d.MACs) / d.Cycles / float64(p.Config.MACs)
	}
	return d, nil
}
