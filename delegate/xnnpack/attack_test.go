//go:build linux

package xnnpack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnnguard"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/internal/guard"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Memory limits for one graph.
const (
	attackLimit = 64 << 20 // the backend's limit
	attackSlack = 64 << 20 // what the library may allocate above it
	attackFixed = 64 << 10 // the library's fixed allocations, not part of the estimate
)

// Graphs above these limits are compiled but not run.
const (
	largeCost  = 2e7
	largeBytes = 2 << 20
)

// attack runs malformed and mutated graphs on both engines. On the native engine, every buffer is
// between inaccessible pages.
type attack struct {
	lib   *xnn.Library
	arena guard.Arena
	count func(counter, n int)
	packs bool // without a weights cache: the library packs weights in its own, guarded memory

	runtimes int // of the library, not deleted
}

// Counters of attack.count for graphs, calls and outputs.
const (
	countGraphs = iota
	countRefused
	countLarge
	countElsewhere
	countNative
	countCalls
	countOutputs
	countProven
)

var attackCounters = []string{"graphs", "refused", "large", "not for the library", "native", "native calls", "outputs", "outputs with a bound"}

func newAttack(t testing.TB) *attack {
	t.Helper()
	lib := xnntest.Library(t)
	if err := xnnguard.Install(lib); err != nil {
		t.Logf("the library's memory is not guarded: %v", err)
	}
	a := &attack{lib: lib, count: func(int, int) {}}
	create, remove := lib.CreateRuntime, lib.DeleteRuntime
	t.Cleanup(func() {
		lib.CreateRuntime, lib.DeleteRuntime = create, remove
		xnnguard.Set(xnnguard.Options{})
	})
	lib.CreateRuntime = func(s xnn.Subgraph, cache xnn.WeightsCache, w xnn.Workspace, pool xnn.Threadpool, flags uint32, out *xnn.Runtime) xnn.Status {
		if a.packs {
			cache = 0
		}
		status := create(s, cache, w, pool, flags, out)
		if status == 0 {
			a.runtimes++
		}
		return status
	}
	lib.DeleteRuntime = func(r xnn.Runtime) xnn.Status {
		if r != 0 {
			a.runtimes--
		}
		return remove(r)
	}
	return a
}

// trial is one graph under attack.
type trial struct {
	*attack
	r        *rand.Rand
	data     []byte
	named    anyBytes
	graph    *graph.Graph  // as read, before nodes are merged
	shapes   []graph.Shape // at the declared sizes
	large    bool          // compiled, not run
	underrun bool
	sets     []callSet
}

// run runs a graph with inputs, sizes and guards derived from the seed. It returns nil or a
// *campaign.Finding; an invalid access ends the process.
func (a *attack) run(g *graph.Graph, seed uint64) (err error) {
	defer a.arena.Reset()
	a.count(countGraphs, 1)
	t := &trial{attack: a, r: rand.New(rand.NewPCG(seed, 77)), named: make(anyBytes)}
	t.data = encodeNamed(g, t.named)
	if err := t.placeConstants(g); err != nil {
		return err
	}
	if ok, err := t.triage(); !ok {
		return err
	}
	t.underrun, t.packs = t.r.IntN(3) == 0, t.r.IntN(3) == 0
	if !t.large {
		t.makeSets()
	}
	before := xnnguard.Read(true)
	if err := t.runEngines(); err != nil {
		return err
	}
	after := xnnguard.Read(false)
	if after.Refused > before.Refused {
		return &campaign.Finding{Kind: "memory", Message: fmt.Sprintf("the library requested more than %d bytes", attackLimit+attackSlack)}
	}
	if after.Blocks != before.Blocks {
		return &campaign.Finding{Kind: "leak", Message: fmt.Sprintf("the library did not free %d blocks", after.Blocks-before.Blocks)}
	}
	return nil
}

func (t *trial) runEngines() error {
	if t.large {
		t.count(countLarge, 1)
		return t.compileLarge()
	}
	if ok, err := t.runReference(); !ok {
		return err
	}
	if err := t.runMerged(); err != nil {
		return err
	}
	return t.runNative()
}

// compileLarge checks that both engines reject a large graph, or compile it within the memory limit.
func (t *trial) compileLarge() error {
	xnnguard.Set(xnnguard.Options{Limit: attackLimit + attackSlack})
	for _, engine := range []Engine{EngineGo, EngineNative} {
		img, err := t.compile(engine)
		if err == nil {
			if img.Info().Scratch+img.Info().PackedBytes > attackLimit {
				err = &campaign.Finding{Kind: "memory", Message: "compiled with more memory than the limit"}
			}
			img.Close()
		} else {
			err = wantReason(err, delegate.ErrUnsupported, delegate.ErrMemory)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// placeConstants moves constants into guarded memory. Their capacity exceeds the readable bytes, so
// that the backend does not copy them to get padding. If one constant has the wrong size, none does.
func (t *trial) placeConstants(g *graph.Graph) error {
	claim := 64
	for v := range g.Values {
		if x := &g.Values[v]; x.IsConst() && (!x.Datatype.Valid() || x.Shape.Check() != nil || len(x.Data) != x.Datatype.Bytes(x.Shape)) {
			claim = 0
		}
		if n := len(g.Values[v].Quant.Blocks); n > 0 && g.Values[v].Shape.Numel() != n*g.Values[v].Quant.GroupSize {
			claim = 0
		}
	}
	for key, data := range t.named {
		m, err := t.arena.Allocate(len(data) + 64)
		if err != nil {
			return err
		}
		m.Fill(0x3f)
		b := m.Behind(len(data), xnn.ExtraBytes+(4-len(data)%4)%4, claim)
		copy(b, data)
		t.named[key] = b
	}
	return nil
}

// triage reads the graph as the backend does. ok is false if the graph is rejected. err is nil if
// the rejection has one of the expected errors. Graphs too large to run are marked.
func (t *trial) triage() (ok bool, err error) {
	g, err := graphtest.ReadGraph(t.data, t.named)
	var shapes []graph.Shape
	if err == nil {
		shapes, err = g.Repair()
	}
	if err != nil {
		t.count(countRefused, 1)
		return false, wantReason(err, delegate.ErrPayload, delegate.ErrUnsupported)
	}
	total := 0
	for v := range g.Values {
		if shapes[v].Rank > 0 {
			total += g.Values[v].Datatype.Bytes(shapes[v]) + len(g.Values[v].Data)
		}
	}
	t.graph, t.shapes = g, shapes
	t.large = total > largeBytes || g.Cost(shapes) > largeCost
	return true, nil
}

func wantReason(err error, reasons ...error) error {
	for _, r := range reasons {
		if errors.Is(err, r) {
			return nil
		}
	}
	return &campaign.Finding{Kind: "error", Message: err.Error()}
}

// runReference computes each set's results and bounds on the Go engine, with the graph as read and
// values between nodes next to inaccessible pages.
func (t *trial) runReference() (ok bool, err error) {
	m := &image{Compilation: &graph.Compilation{Graph: cloneGraph(t.graph), Shapes: slices.Clone(t.shapes)}}
	img, err := Backend{Engine: EngineGo, Values: true}.compile(context.Background(), m)
	if err != nil {
		return false, wantReason(err, delegate.ErrUnsupported, delegate.ErrMemory)
	}
	defer img.Close()
	made, err := img.Unit(delegate.Instance{})
	if err != nil {
		return false, err
	}
	unit := made.(*viewed)
	for k := range t.sets {
		set := &t.sets[k]
		run := make(map[int]*tensor.Tensor)
		if set.shapes != nil {
			if err := t.separate(unit, set.shapes, run); err != nil {
				return false, err
			}
		}
		args, err := t.call("reference", unit, set, 0, 0xc3)
		if err != nil {
			return false, err
		}
		if args != nil {
			for i, v := range t.graph.Args {
				run[v] = args[i].Tensor
			}
			set.want, set.bounds = detach(args), boundsOf(t.graph, set.shapes, run)
		}
	}
	return true, nil
}

// separate gives each value between nodes its own memory at the given shapes. Bounds read all values after the run.
func (t *trial) separate(unit *viewed, shapes []graph.Shape, run map[int]*tensor.Tensor) error {
	for i, v := range unit.graph.Args[len(t.graph.Args):] {
		x := tensor.Make(t.graph.Values[v].Datatype.Info().Tensor, shapes[v].Dims(), nil, tensor.DynamicUnbound)
		m, err := t.arena.Allocate(x.NBytes())
		if err != nil {
			return err
		}
		if t.underrun {
			x.Bind(m.Start(x.NBytes(), 0))
		} else {
			x.Bind(m.End(x.NBytes(), 0))
		}
		*unit.shown[i], run[v] = tensor.TensorValue(x), x
	}
	return nil
}

// runMerged compares the Go engine's results with its results before nodes were merged. Half of the graphs always have their
// declared sizes, for which more nodes are merged.
func (t *trial) runMerged() error {
	p := t.payload()
	static := len(t.graph.Repaired) == 0 && t.r.IntN(2) == 0
	if static {
		p.Args, p.AsWritten = graphtest.ArgSpecs(t.graph, false), true
	}
	img, err := Backend{Engine: EngineGo}.Compile(context.Background(), p)
	if err != nil {
		return wantReason(err, delegate.ErrUnsupported, delegate.ErrMemory)
	}
	defer img.Close()
	unit, err := img.Unit(delegate.Instance{})
	if err != nil {
		return &campaign.Finding{Kind: "unit", Message: err.Error()}
	}
	defer unit.Close()
	for k := range t.sets {
		set := &t.sets[k]
		if static && k == 1 { // at other sizes
			continue
		}
		args, err := t.call("reference", unit, set, 0, 0xc3)
		if err != nil {
			return err
		}
		if args == nil {
			continue
		}
		if err := set.bounds.compare(args, set.want); err != nil {
			return &campaign.Finding{Kind: "merge", Message: "Go engine before and after nodes are merged: " + err.Error()}
		}
	}
	return nil
}

// call runs a set and returns its arguments, or nil if the sizes are invalid and rejected.
func (t *trial) call(engine Engine, unit delegate.Unit, set *callSet, slack int, poison byte) ([]*tensor.Value, error) {
	args, edges, err := t.arguments(set, slack, poison)
	if err != nil {
		return nil, err
	}
	if err := t.wantExecute(engine, set, unit.Execute(context.Background(), args)); err != nil || set.shapes == nil {
		return nil, err
	}
	if err := intact(edges, poison); err != nil || slack == 0 {
		return args, err
	}
	result := detach(args)
	return result, t.again(unit, args, edges, result)
}

func (t *trial) payload() *delegate.Payload {
	return &delegate.Payload{Data: t.data, Named: t.named, Limits: delegate.Limits{Memory: attackLimit}}
}

func (t *trial) compile(engine Engine) (delegate.Image, error) {
	return Backend{Engine: engine, Library: xnntest.Path()}.Compile(context.Background(), t.payload())
}

// runNative runs all sets twice, with different poison in new memory and around the arguments. It
// compares the results with each other and with the reference.
func (t *trial) runNative() error {
	var first [][]*tensor.Value
	for pass, poison := range []byte{0x7f, 0xa5} {
		xnnguard.Set(xnnguard.Options{Poison: poison, Underrun: t.underrun, Limit: attackLimit + attackSlack})
		results, err := t.nativePass(poison)
		if err != nil || results == nil {
			return err
		}
		if pass == 0 {
			first = results
			continue
		}
		for k := range results {
			if err := sameBytes(first[k], results[k], t.graph); err != nil {
				return err
			}
		}
	}
	t.count(countNative, 1)
	for k := range t.sets {
		set := &t.sets[k]
		if set.shapes == nil {
			continue
		}
		t.count(countCalls, 1)
		t.count(countOutputs, len(t.graph.Args)-t.graph.Inputs)
		t.count(countProven, set.bounds.proven())
		if err := set.bounds.compare(first[k], set.want); err != nil {
			return &campaign.Finding{Kind: "difference", Message: err.Error()}
		}
	}
	return nil
}

// nativePass returns the arguments after each set's call, or nil if the library does not support
// the graph.
func (t *trial) nativePass(poison byte) ([][]*tensor.Value, error) {
	before := xnnguard.Read(true).Bytes
	img, err := t.compile(EngineNative)
	if err != nil {
		t.count(countElsewhere, 1)
		return nil, wantReason(err, delegate.ErrUnsupported, delegate.ErrMemory)
	}
	defer img.Close()
	unit, err := img.Unit(delegate.Instance{})
	if err != nil {
		return nil, &campaign.Finding{Kind: "unit", Message: err.Error()}
	}
	defer unit.Close()
	var results [][]*tensor.Value
	for k := range t.sets {
		set := &t.sets[k]
		result, err := t.call("native", unit, set, xnn.ExtraBytes, poison)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
		if most := uint64(img.Info().Scratch); k == 0 && !t.packs && xnnguard.Read(false).Peak-before > most+attackFixed {
			return nil, &campaign.Finding{Kind: "estimate", Message: fmt.Sprintf("the library allocated %d bytes, estimate %d", xnnguard.Read(false).Peak-before, most)}
		}
	}
	return results, nil
}
