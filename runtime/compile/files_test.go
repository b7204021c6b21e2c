//go:build linux

package compile_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/delegatetest"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/runtime/compile"
	"github.com/etrun-go/etrun/runtime/compile/compiletest"
	"github.com/etrun-go/etrun/runtime/exec"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// writingOracle writes graphs as numbers of graphs that it keeps.
type writingOracle struct {
	lowering.Compiler
	oracle delegatetest.Oracle
	graphs *[]*lowering.Graph
}

// graphMark is the first byte of the payload of a graph: no number of inputs.
const graphMark = 0xFF

func (o writingOracle) Write(g *lowering.Graph) (*lowering.Written, error) {
	if o.oracle.Refuse != nil {
		if err := o.oracle.Refuse(g); err != nil {
			return nil, err
		}
	}
	*o.graphs = append(*o.graphs, g)
	payload := binary.LittleEndian.AppendUint32([]byte{graphMark}, uint32(len(*o.graphs)-1))
	return &lowering.Written{Encode: func(func(string) bool) [][]byte { return [][]byte{payload} }}, nil
}

func (o writingOracle) Compile(ctx context.Context, p *delegate.Payload) (delegate.Image, error) {
	if len(p.Data) == 5 && p.Data[0] == graphMark {
		return o.CompileGraph(ctx, (*o.graphs)[binary.LittleEndian.Uint32(p.Data[1:])])
	}
	return o.oracle.Compile(ctx, p)
}

// TestRandomLoweredFiles lowers random programs with control flow, state, views, lists and dynamic sizes to files, and runs
// these with the plan in the file.
func TestRandomLoweredFiles(t *testing.T) {
	c := &campaign.Campaign{Test: "TestRandomLoweredFiles", Usual: 300, Memory: 256 << 20, Counters: []string{"programs", "regions", "unchanged programs"},
		Start: func(_ *testing.T, p *campaign.Process) func(seed uint64) error {
			return func(seed uint64) error {
				regions, err := lowerMixFile(seed, seed%2 == 0)
				p.Count(0, 1)
				p.Count(1, regions)
				if regions == 0 {
					p.Count(2, 1)
				}
				if err != nil {
					return &campaign.Finding{Kind: "lowered file", Message: err.Error()}
				}
				return nil
			}
		}}
	c.Run(t)
}

// TestLoweredFileSeeds lowers programs that went wrong: views of a view that only a region made.
func TestLoweredFileSeeds(t *testing.T) {
	for _, seed := range []uint64{24719, 35386} {
		if regions, err := lowerMixFile(seed, false); err != nil || regions == 0 {
			t.Errorf("seed %d: %d regions, %v", seed, regions, err)
		}
	}
}

func lowerMixFile(seed uint64, keeps bool) (regions int, err error) {
	r := rand.New(rand.NewPCG(seed, 6))
	spec := newMix(r, keeps)
	share, hard := []uint64{10, 9, 6, 3}[r.IntN(4)], r.IntN(2) == 0
	data := ptetest.Write(&pte.Program{Methods: []pte.Method{*spec}}, ptetest.Layout{})
	oracle := mask(seed, share, hard)
	oracle.Reject = nil
	by := writingOracle{oracle, oracle, new([]*lowering.Graph)}
	result, err := compile.Lower(context.Background(), data, compile.Options{Backends: map[string]delegate.Backend{by.ID(): by}, Writers: []lowering.Writer{by},
		Operators: mixSet(), All: true, Planned: math.MaxInt32, AsWritten: true})
	if err != nil || !result.Lowered() {
		return 0, err
	}
	if faults := compiletest.Check(data, result.Data.Bytes()); len(faults) > 0 {
		return 0, fmt.Errorf("%s", faults[0])
	}
	load := func(data []byte, mode plan.Mode) (*exectest.Method, error) {
		file, err := pte.Parse(data, pte.Limits{})
		if err != nil {
			return nil, err
		}
		o := mixOptions(by, false)
		o.Plan.Mode = mode
		return exectest.New(file, &file.Methods[0], file.Size, o).Load(context.Background(), exec.Options{})
	}
	reference, err := load(data, plan.Own)
	if err != nil {
		return 0, err
	}
	m, err := load(result.Data.Bytes(), plan.File)
	if err != nil {
		return 0, fmt.Errorf("lowered: %w\n%s", err, reference.Listing())
	}
	if n := len(m.Plan().Conflicts); n > 0 {
		return 0, fmt.Errorf("%d conflicts in the plan of the file\n%s", n, m.Listing())
	}
	m.Poison(0xAA)
	for run := range 5 {
		if err := compareMix(m, reference, run); err != nil {
			return 0, fmt.Errorf("run %d, %w\n%s\nreference:\n%s", run, err, m.Listing(), reference.Listing())
		}
	}
	return result.Methods[0].Report.Accepted(), nil
}

// TestLoweredRandomPrograms runs TestLoweredExecutionEqualsOriginal as a campaign.
func TestLoweredRandomPrograms(t *testing.T) {
	c := &campaign.Campaign{Test: "TestLoweredRandomPrograms", Usual: 200, Memory: 256 << 20, Counters: []string{"programs", "regions", "programs with rejected sizes", "merged payloads"},
		Start: func(_ *testing.T, p *campaign.Process) func(seed uint64) error {
			return func(seed uint64) error {
				n, err := lowerMix(seed + 1<<32)
				p.Count(0, 1)
				p.Count(1, n.regions)
				if n.rejected {
					p.Count(2, 1)
				}
				p.Count(3, n.payloads)
				if err != nil {
					return &campaign.Finding{Kind: "lowered", Message: err.Error()}
				}
				return nil
			}
		}}
	c.Run(t)
}
