//go:build linux

package xnnpack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnnguard"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/cputime"
	"github.com/etrun-go/etrun/internal/guard"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// What one graph may cost: the limit that the backend is given, and some, and time.
const (
	attackLimit = 64 << 20
	attackSlack = 64 << 20
	attackTime  = 20 * time.Second
	attackFixed = 64 << 10 // of the library's for any graph, beside the estimate
)

// Graphs above these are compiled, and not run.
const (
	largeCost  = 2e7
	largeBytes = 2 << 20
)

// attack runs hostile graphs on both engines, natively with every buffer between pages
// without access.
type attack struct {
	lib     *xnn.Library
	arena   guard.Arena
	figures attackFigures
	packs   bool // the library packs weights in its own memory, which is guarded
}

// attackFigures count what became of graphs.
type attackFigures struct {
	Graphs, Refused, Large, NotNative, Native, Runs, Outputs, Proven int
}

// finding is a graph that did what no graph may do.
type finding struct {
	Kind    string // "difference", "memory", …
	Message string
}

func (f *finding) Error() string { return f.Kind + ": " + f.Message }

func newAttack(t testing.TB) *attack {
	t.Helper()
	lib := xnntest.Library(t)
	if err := xnnguard.Install(lib); err != nil {
		t.Skip(err)
	}
	a := &attack{lib: lib}
	create := lib.CreateRuntime
	t.Cleanup(func() { lib.CreateRuntime = create })
	lib.CreateRuntime = func(s xnn.Subgraph, cache xnn.WeightsCache, w xnn.Workspace, pool xnn.Threadpool, flags uint32, out *xnn.Runtime) xnn.Status {
		if a.packs {
			cache = 0
		}
		return create(s, cache, w, pool, flags, out)
	}
	return a
}

// trial is one graph under attack.
type trial struct {
	*attack
	r        *rand.Rand
	data     []byte
	named    anyBytes
	graph    *Graph  // as it is read, before nodes are merged
	shapes   []shape // at the declared sizes
	large    bool    // not to be run
	underrun bool
	sets     []callSet
}

// callSet is a call of the graph: sizes and bytes of the inputs.
type callSet struct {
	shapes []shape // of all values; nil where the sizes do not go together
	sizes  []shape // of the inputs
	inputs [][]byte
	want   []*tensor.Value
	bounds *bounds
}

// run runs a graph with what the seed makes of inputs, sizes and guards. It gives nil,
// a *finding, or does not come back.
func (a *attack) run(g *Graph, seed uint64) (err error) {
	defer a.arena.Reset()
	a.figures.Graphs++
	t := &trial{attack: a, r: rand.New(rand.NewPCG(seed, 77)), named: make(anyBytes)}
	t.data = encodeNamed(g, t.named)
	if err := t.placeConstants(g); err != nil {
		return err
	}
	if ok, err := t.triage(); !ok {
		return err
	}
	t.underrun, t.packs = t.r.IntN(3) == 0, t.r.IntN(3) == 0
	t.makeSets()
	begun, before, resident := cputime.Process(), xnnguard.Read(true), startResident()
	if err := t.runEngines(); err != nil {
		return err
	}
	if took := cputime.Process() - begun; took > attackTime {
		return &finding{"time", took.String()}
	}
	after := xnnguard.Read(false)
	if after.Refused > before.Refused {
		return &finding{"memory", fmt.Sprintf("the library asked for more than %d bytes", attackLimit+attackSlack)}
	}
	if after.Blocks != before.Blocks {
		return &finding{"leak", fmt.Sprintf("%d blocks of the library are left", after.Blocks-before.Blocks)}
	}
	if n := resident.grown(); n > attackLimit+attackSlack {
		return &finding{"memory", fmt.Sprintf("%d bytes resident, at most %d", n, attackLimit+attackSlack)}
	}
	return nil
}

func (t *trial) runEngines() error {
	if t.large {
		t.figures.Large++
		return t.compileLarge()
	}
	if err := t.runReference(); err != nil {
		return err
	}
	if err := t.runMerged(); err != nil {
		return err
	}
	return t.runNative()
}

// compileLarge wants both engines to refuse a large graph, or to be within the limits
// with it.
func (t *trial) compileLarge() error {
	xnnguard.Set(xnnguard.Options{Limit: attackLimit + attackSlack})
	for _, engine := range []Engine{EngineReference, EngineNative} {
		img, err := t.compile(engine)
		if err == nil {
			if img.Info().Scratch+img.Info().PackedBytes > attackLimit {
				err = &finding{"memory", "compiled beyond the limit"}
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

// placeConstants moves constants into guarded memory. They claim more bytes than there
// are, so that they are not copied to where more can be read, unless one is of the
// wrong size.
func (t *trial) placeConstants(g *Graph) error {
	claim := 64
	for v := range g.Values {
		if x := &g.Values[v]; x.isConst() && (!x.Datatype.Valid() || x.Shape.check() != nil || len(x.Data) != x.Datatype.bytes(x.Shape)) {
			claim = 0
		}
		if n := len(g.Values[v].Quant.Blocks); n > 0 && g.Values[v].Shape.numel() != n*g.Values[v].Quant.GroupSize {
			claim = 0
		}
	}
	for key, data := range t.named {
		m, err := t.arena.Take(len(data) + 64)
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

// triage reads the graph as the backend does. ok is false if it is refused, which is
// right as long as the error has a class, or too large to be run here.
func (t *trial) triage() (ok bool, err error) {
	g, err := readGraph(t.data, t.named)
	var shapes []shape
	if err == nil {
		shapes, err = g.repair()
	}
	if err != nil {
		t.figures.Refused++
		return false, wantReason(err, delegate.ErrPayload, delegate.ErrUnsupported)
	}
	total := 0
	for v := range g.Values {
		if shapes[v].rank > 0 {
			total += g.Values[v].Datatype.bytes(shapes[v]) + len(g.Values[v].Data)
		}
	}
	t.graph, t.shapes = g, shapes
	t.large = total > largeBytes || g.cost(shapes) > largeCost
	return true, nil
}

func wantReason(err error, reasons ...error) error {
	for _, r := range reasons {
		if errors.Is(err, r) {
			return nil
		}
	}
	return &finding{"error", err.Error()}
}

// makeSets makes calls at the declared sizes, at others, and at the declared ones again.
func (t *trial) makeSets() {
	g := t.graph
	count := 1
	if t.r.IntN(3) == 0 {
		count = 3
	}
	m := &maker{g: g, r: t.r, lo: -2, hi: 2}
	switch t.r.IntN(8) {
	case 0:
		m.lo, m.hi = 0, 1
	case 1:
		m.lo, m.hi = -1000, 1000
	case 2:
		m.lo, m.hi = 1e-6, 2e-6
	}
	for k := range count {
		set := callSet{shapes: make([]shape, len(g.Values))}
		for _, v := range g.Args[:g.Inputs] {
			s := g.Values[v].Shape
			if k == 1 {
				for i := range s.dims() {
					s.dim[i] = max(1, one(t.r, s.dim[i], s.dim[i], 1, s.dim[i]-1, s.dim[i]+1, s.dim[i]/2, 1+t.r.IntN(2*s.dim[i])))
				}
				if s.squeezed() == g.Values[v].Shape.squeezed() { // the same to the backend
					s = g.Values[v].Shape
				}
			}
			set.shapes[v] = s
			set.sizes = append(set.sizes, s)
			set.inputs = append(set.inputs, t.inputBytes(m, &g.Values[v], s))
		}
		if g.infer(set.shapes) != nil || g.cost(set.shapes) > 4*largeCost {
			set.shapes = nil
		}
		t.sets = append(t.sets, set)
	}
}

// inputBytes are an input's elements, at times special ones among them.
func (t *trial) inputBytes(m *maker, v *Value, s shape) []byte {
	b := m.bytes(v.Datatype, s)
	if len(b) == 0 || t.r.IntN(6) > 0 {
		return b
	}
	for range 1 + t.r.IntN(4) {
		i := t.r.IntN(s.numel())
		switch v.Datatype {
		case FP32:
			tensor.View[float32](b)[i] = one(t.r, inf, -inf, float32(math.NaN()), math.MaxFloat32, 0, 0x1p-149, -0x1p-130, 1e30)
		case FP16, BF16:
			tensor.View[uint16](b)[i] = uint16(t.r.Uint32())
		default:
			b[i] = one[byte](t.r, 0, 0x80, 0x7f, 0xff)
		}
	}
	return b
}

// arguments puts a call's arguments into guarded memory, with slack readable bytes
// behind, or at the first bytes of their pages. What surrounds them is poison.
func (t *trial) arguments(set *callSet, slack int, poison byte) (args []*tensor.Value, edges [][2][]byte, err error) {
	g := t.graph
	args = []*tensor.Value{}
	for i, v := range g.Args {
		x, s := &g.Values[v], g.Values[v].Shape
		if set.shapes != nil {
			s = set.shapes[v]
		} else if x.Input {
			s = set.sizes[i]
		}
		dtype := x.Datatype.info().tensor
		if x.Datatype == Int32 && !x.Input && len(g.Nodes)%2 == 0 {
			dtype = tensor.Int64
		}
		a := tensor.Make(dtype, s.dims(), nil, tensor.DynamicUnbound)
		n := a.NBytes()
		m, err := t.arena.Take(n + 128)
		if err != nil {
			return nil, nil, err
		}
		m.Fill(poison)
		b := m.End(n, slack)
		if t.underrun {
			b = m.Start(n, 0)
			whole := m.Start(m.Len(), 0)
			edges = append(edges, [2][]byte{nil, whole[n:min(n+64, len(whole))]})
		} else {
			whole := m.End(m.Len(), 0)
			at := len(whole) - slack - n
			edges = append(edges, [2][]byte{whole[max(0, at-64):at], whole[len(whole)-slack:]})
		}
		if x.Input {
			copy(b, set.inputs[i])
		}
		a.Bind(b)
		value := tensor.TensorValue(a)
		args = append(args, &value)
	}
	return args, edges, nil
}

// intact wants the poison around arguments to be there still.
func intact(edges [][2][]byte, poison byte) error {
	for i, pair := range edges {
		for side, b := range pair {
			if j := slices.IndexFunc(b, func(x byte) bool { return x != poison }); j >= 0 {
				return &finding{"write", fmt.Sprintf("argument %d: byte %d %s it was changed", i, j, [2]string{"in front of", "behind"}[side])}
			}
		}
	}
	return nil
}

// runReference makes every set's results and bounds, on the Go engine, with the graph
// as it was read, and values between nodes at pages without access.
func (t *trial) runReference() error {
	unit := newReference(&image{graph: t.graph, shapes: t.shapes}, delegate.Instance{})
	for i := range t.graph.Nodes {
		for _, v := range t.graph.Nodes[i].Out {
			n := t.graph.Values[v].Datatype.bytes(t.shapes[v])
			m, err := t.arena.Take(n)
			if err != nil {
				return err
			}
			if unit.own[v] = m.End(n, 0); t.underrun {
				unit.own[v] = m.Start(n, 0)
			}
		}
	}
	for k := range t.sets {
		set := &t.sets[k]
		args, err := t.call("reference", unit, set, 0, 0xc3)
		if err != nil {
			return err
		}
		if args != nil {
			set.want, set.bounds = detach(args), boundsOf(unit)
		}
	}
	return nil
}

// runMerged compares the Go engine's results with its own before nodes were merged.
func (t *trial) runMerged() error {
	img, err := t.compile(EngineReference)
	if err != nil {
		return wantReason(err, delegate.ErrUnsupported, delegate.ErrMemory)
	}
	defer img.Close()
	unit, err := img.Unit(delegate.Instance{})
	if err != nil {
		return &finding{"unit", err.Error()}
	}
	defer unit.Close()
	for k := range t.sets {
		set := &t.sets[k]
		args, err := t.call("reference", unit, set, 0, 0xc3)
		if err != nil {
			return err
		}
		if args == nil {
			continue
		}
		if err := set.bounds.compare(args, set.want, new(int)); err != nil {
			return &finding{"merge", "Go engine before and after nodes are merged: " + err.Error()}
		}
	}
	return nil
}

// call runs a set, and gives its arguments; nil where the sizes are refused, as they
// should be.
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

// wantExecute wants a call of sizes that go together to run, and others to be refused.
func (t *trial) wantExecute(engine Engine, set *callSet, err error) error {
	switch {
	case set.shapes == nil && errors.Is(err, delegate.ErrArgument):
		return nil
	case set.shapes == nil && (err == nil || errors.Is(err, delegate.ErrMemory)) && t.graph.infer(shapesOf(t.graph, set)) == nil:
		return nil // large ones
	case set.shapes != nil && err == nil:
		return nil
	}
	return &finding{"execute", fmt.Sprintf("%s engine, inputs of sizes %v: %v", engine, set.sizes, err)}
}

func shapesOf(g *Graph, set *callSet) []shape {
	s := make([]shape, len(g.Values))
	for i, v := range g.Args[:g.Inputs] {
		s[v] = set.sizes[i]
	}
	return s
}

func detach(args []*tensor.Value) []*tensor.Value {
	out := make([]*tensor.Value, len(args))
	for i, a := range args {
		x := tensor.Make(a.Tensor.DType, a.Tensor.Sizes, nil, tensor.DynamicUnbound)
		x.Bind(append(tensor.AlignedBytes(x.NBytes())[:0], a.Tensor.Data...))
		value := tensor.TensorValue(x)
		out[i] = &value
	}
	return out
}

func (t *trial) compile(engine Engine) (delegate.Image, error) {
	b := Backend{Engine: engine, Library: xnntest.Path()}
	return b.Compile(context.Background(), &delegate.Payload{Data: t.data, Named: t.named, Limits: delegate.Limits{Memory: attackLimit}})
}

// runNative runs all sets twice, each time with other poison in new memory and around
// the arguments, and compares both with each other and with the reference.
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
	t.figures.Native++
	for k := range t.sets {
		set := &t.sets[k]
		if set.shapes == nil {
			continue
		}
		t.figures.Runs++
		t.figures.Outputs += len(t.graph.Args) - t.graph.Inputs
		if err := set.bounds.compare(first[k], set.want, &t.figures.Proven); err != nil {
			return &finding{"difference", err.Error()}
		}
	}
	return nil
}

// nativePass gives the arguments after each set's call; nil where the library does not
// run the graph.
func (t *trial) nativePass(poison byte) ([][]*tensor.Value, error) {
	before := xnnguard.Read(true).Bytes
	img, err := t.compile(EngineNative)
	if err != nil {
		t.figures.NotNative++
		return nil, wantReason(err, delegate.ErrUnsupported, delegate.ErrMemory)
	}
	defer img.Close()
	unit, err := img.Unit(delegate.Instance{})
	if err != nil {
		return nil, &finding{"unit", err.Error()}
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
			return nil, &finding{"estimate", fmt.Sprintf("%d bytes of the library's, estimated %d", xnnguard.Read(false).Peak-before, most)}
		}
	}
	return results, nil
}

// again repeats a call with other bytes around its arguments and in its outputs.
func (t *trial) again(unit delegate.Unit, args []*tensor.Value, edges [][2][]byte, want []*tensor.Value) error {
	for _, pair := range edges {
		for _, b := range pair {
			for i := range b {
				b[i] = 0x55
			}
		}
	}
	for _, a := range args[t.graph.Inputs:] {
		for i := range a.Tensor.Data {
			a.Tensor.Data[i] = 0x55
		}
	}
	if err := unit.Execute(context.Background(), args); err != nil {
		return &finding{"execute", "second call: " + err.Error()}
	}
	return sameBytes(want, args, t.graph)
}

func sameBytes(a, b []*tensor.Value, g *Graph) error {
	if a == nil || b == nil {
		return nil
	}
	for i := g.Inputs; i < len(a); i++ {
		if x, y := a[i].Tensor.Data, b[i].Tensor.Data; !bytes.Equal(x, y) {
			j := 0
			for x[j] == y[j] {
				j++
			}
			return &finding{"foreign", fmt.Sprintf("output %d, byte %d depends on memory that is not the graph's: %#x and %#x", i-g.Inputs, j, x[j], y[j])}
		}
	}
	return nil
}

// resident is the process's resident memory when a graph began.
type resident uint64

// startResident lets the kernel's peak start anew.
func startResident() resident {
	os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	return resident(statusBytes("VmRSS:"))
}

// grown is how much more has been resident since.
func (r resident) grown() uint64 {
	return max(statusBytes("VmHWM:"), uint64(r)) - uint64(r)
}

func statusBytes(field string) uint64 {
	data, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(data), field)
	line, _, _ := strings.Cut(rest, "kB")
	n, _ := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	return n << 10
}
