// Package xnnpack is the delegate for ExecuTorch's XNNPACK payloads: graphs of neural network
// operations.
//
// A payload is parsed and completely validated in Go. Two engines run the resulting graph: the
// native engine uses libXNNPACK, the other one computes in Go on any machine. Three tables have an
// entry per kind of node: its parser, checks and shape inference; how libXNNPACK runs it; and how the
// engine in Go does.
//
// Graphs of ATen operators from lowering are converted to the same graphs by another table, with
// one entry per operator. The results are validated like payloads.
package xnnpack

import (
	"context"
	"errors"
	"slices"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
)

// Engine selects the implementation that runs graphs.
type Engine string

// Engines. EngineAuto selects the engine that is estimated to be faster for each graph. It uses the
// Go engine if the library is not available, does not support the graph, or fails. With a
// WeightsCache, which stores the library's packed weights, it uses the native engine wherever
// possible. EngineNative returns an error if the library is missing, does not support the graph or
// computes it wrongly; if the library fails to create the graph, the Go engine runs it, with a warning. EngineGo
// treats NaN, infinities and subnormal numbers as PyTorch does; the library does not.
const (
	EngineAuto   Engine = "auto"
	EngineNative Engine = "native" // libXNNPACK
	EngineGo     Engine = "go"
	// EngineReference is EngineGo. The string "reference" is accepted, too.
	//
	// Deprecated: use EngineGo.
	EngineReference = EngineGo
)

// Engines lists all engines.
var Engines = []Engine{EngineAuto, EngineNative, EngineGo}

// formerName is the name of EngineGo in earlier versions.
const formerName Engine = "reference"

// Backend compiles payloads of the XNNPACK delegate. The zero value is ready to use.
type Backend struct {
	Engine       Engine // empty means EngineAuto
	Library      string // path of libXNNPACK or its folder, see [xnn.Open]; empty means to search for it
	WeightsCache string // folder in which packed weights are stored for later processes, empty for none
	MapWeights   bool   // map files of packed weights, sharing them with other processes; the files must not change
	NoRepair     bool   // disable the repair of known exporter faults in payloads
	// Values stores the result of every node in its own memory, so that observers can read it (see
	// [delegate.Viewer]). This needs more memory and time.
	Values bool
	// KeepConstants disables the release of constants that have been packed, so that Info contains
	// them.
	KeepConstants bool
}

// ID returns the name that identifies the backend in programs.
func (Backend) ID() string { return ID }

// Probe reports the available library; without one the Go engine runs.
func (b Backend) Probe() delegate.Status {
	lib, err := xnn.Open(b.Library)
	if err != nil {
		return delegate.Status{Loaded: true, Engine: string(EngineGo), Detail: err.Error()}
	}
	return delegate.Status{Loaded: true, Engine: string(EngineNative), Detail: describeLibrary(lib) + describeFaults(lib.Soname)}
}

// Compile validates the payload and compiles it for the selected engine.
func (b Backend) Compile(ctx context.Context, p *delegate.Payload) (delegate.Image, error) {
	x, inGo := b.surveyed(p)
	if x == nil {
		var err error
		if x, err = b.plan(p); err != nil {
			return nil, err
		}
	}
	return b.compile(ctx, x.image(&compilation{limits: p.Limits, args: p.Args, release: p.Release, scratch: p.Scratch, threadCount: p.Threads}, inGo))
}

// compile selects the engine of a planned image and prepares the image for it.
func (b Backend) compile(ctx context.Context, img *image) (delegate.Image, error) {
	if b.Engine == formerName {
		b.Engine = EngineGo
	}
	if b.Engine != "" && !slices.Contains(Engines, b.Engine) {
		return nil, unsupported("", "engine %q, want one of %q", b.Engine, Engines)
	}
	g := img.graph
	img.calls, img.shown = len(g.Args), b.Values
	if b.Values {
		showValues(g)
	}
	if b.Values || b.KeepConstants {
		img.release = nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	img.cost = g.cost(img.shapes)
	if b.Engine == EngineGo || img.region && hidesNaN(g) {
		return img.openGo(ctx)
	}
	if done, err := b.choose(ctx, img); done || err != nil {
		return img, err
	}
	library := &nativeImage{compilation: img.compilation, cost: img.cost, inGo: &goImage{compilation: img.compilation}, fail: img.fail}
	err := library.open(ctx, nativeOptions{library: b.Library, weightsFolder: b.WeightsCache, mapWeights: b.MapWeights})
	if img.cacheNote = library.cacheNote; err == nil {
		img.by = library
		return img, nil
	}
	opened, released := library.isOpen(), library.hasReleased()
	library.close()
	switch {
	case ctx.Err() != nil || released, !opened && b.Engine == EngineNative, xnn.Named(b.Library) && errors.Is(err, delegate.ErrMissing):
		return nil, err
	case opened:
		img.fail(err)
	}
	img.notNative = err.Error()
	img.noLibrary, _ = errors.AsType[*xnn.OpenError](err)
	return img.openGo(ctx)
}

// openGo compiles the graph for the Go engine.
func (m *image) openGo(ctx context.Context) (delegate.Image, error) {
	own, err := newGoImage(ctx, m.compilation)
	if err != nil {
		return nil, err
	}
	m.by = own
	return m, nil
}
