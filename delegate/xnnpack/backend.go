// Package xnnpack runs the payloads of ExecuTorch's XNNPACK delegate: graphs of
// neural network operations.
//
// A payload is read and checked in Go, byte by byte, into a graph. Two engines run
// graphs: the native one hands them to libXNNPACK, the reference one computes them in
// Go, on any machine. Each kind of node is one row of a table, where its reading,
// checking, shapes, hand-over to the library and reference stand together.
//
// Graphs of operators, which lowering hands over, become the same graphs by another
// table: a row for each operator says which nodes it becomes. A graph made so is checked
// as that of a payload is.
package xnnpack

import (
	"context"
	"errors"
	"slices"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
)

// Engine says what runs graphs.
type Engine string

// Engines. Auto chooses for each graph the one that is estimated to be faster; the reference
// engine where the library is missing or may not have the graph; and the native one wherever it
// can with a WeightsCache, which keeps the library's weights.
const (
	EngineAuto      Engine = "auto"
	EngineNative    Engine = "native"    // libXNNPACK
	EngineReference Engine = "reference" // Go
)

// Engines lists the engines by name.
var Engines = []Engine{EngineAuto, EngineNative, EngineReference}

// Backend compiles payloads of the XNNPACK delegate. The zero value is ready.
type Backend struct {
	Engine       Engine // empty means EngineAuto
	Library      string // libXNNPACK's file or folder, see [xnn.Open]; empty means that it is searched for
	WeightsCache string // folder where packed weights are kept for later processes, empty for none
	MapWeights   bool   // map files of packed weights, which then must not change, and share them with other processes
	NoRepair     bool   // take payloads as they are written, with the faults of exporters that are mended otherwise
	// Values keeps what every node computes in memory of its own, so that observers can see
	// it (see [delegate.Viewer]). It takes more memory and time.
	Values bool
	// KeepConstants gives no memory of constants back, so that Info shows them.
	KeepConstants bool
}

// ID is the name of the backend in programs.
func (Backend) ID() string { return ID }

// Probe says which library there is; without one the reference engine runs.
func (b Backend) Probe() delegate.Status {
	lib, err := xnn.Open(b.Library)
	if err != nil {
		return delegate.Status{Loaded: true, Engine: string(EngineReference), Detail: err.Error()}
	}
	return delegate.Status{Loaded: true, Engine: string(EngineNative), Detail: describeLibrary(lib)}
}

func describeLibrary(lib *xnn.Library) string {
	if lib.PoolStalls {
		return lib.Path + ", one thread: its thread pool stalls on busy processors"
	}
	return lib.Path
}

// Compile reads and checks the payload, and makes an image for the engine that the
// backend asks for.
func (b Backend) Compile(ctx context.Context, p *delegate.Payload) (delegate.Image, error) {
	x, inGo := b.surveyed(p)
	if x == nil {
		var err error
		if x, err = b.plan(p); err != nil {
			return nil, err
		}
	}
	return b.compile(ctx, x.image(&image{limits: p.Limits, args: p.Args, giveBack: p.Release, scratch: p.Scratch, inGo: inGo}))
}

// compile finishes an image of a plan.
func (b Backend) compile(ctx context.Context, img *image) (delegate.Image, error) {
	if b.Engine != "" && !slices.Contains(Engines, b.Engine) {
		return nil, unsupported("", "engine %q, want one of %q", b.Engine, Engines)
	}
	g := img.graph
	img.calls, img.shown = len(g.Args), b.Values
	if b.Values {
		g.showValues()
	}
	if b.Values || b.KeepConstants {
		img.giveBack = nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	img.cost = g.cost(img.shapes)
	if b.Engine == EngineReference {
		return img.openReference()
	}
	if done, err := b.choose(img); done || err != nil {
		return img, err
	}
	err := img.openNative(ctx, b)
	if err == nil {
		return img, nil
	}
	gone := img.holdings != nil && img.weights.gone
	img.Close()
	if b.Engine == EngineNative || gone || xnn.Named(b.Library) && errors.Is(err, delegate.ErrMissing) {
		return nil, err
	}
	img.whyReference = err.Error()
	img.noLibrary, _ = errors.AsType[*xnn.OpenError](err)
	return img.openReference()
}

// openReference makes the image one of the Go engine.
func (m *image) openReference() (delegate.Image, error) {
	m.native = false
	m.graph.fuseTables(m.shapes)
	if err := m.graph.checkPools(m.shapes); err != nil {
		return nil, err
	}
	m.places = m.graph.placesFor(m.shapes)
	m.needs = m.graph.referenceNeeds(m.places, cpu.DefaultThreads())
	if err := m.needs.check(m.limits); err != nil {
		return nil, err
	}
	m.packOnce.Do(func() { m.packed = m.graph.packFilters(m.shapes, m.releaseFilters()) })
	return m, nil
}
