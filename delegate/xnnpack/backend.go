// Package xnnpack is the delegate for ExecuTorch's XNNPACK payloads: graphs of neural network
// operations.
//
// A payload is parsed and completely validated in Go, by the package graph in the folder internal. Two
// engines run the resulting graph: the package native uses libXNNPACK, goengine computes in Go on any
// machine. Each of the three has a table with an entry per kind of node: its parser, checks and shape
// inference; how libXNNPACK runs it; and how the engine in Go does.
//
// Graphs of ATen operators are converted to the same graphs by the package lowering, whose table has
// one entry per operator. The results are validated like payloads.
package xnnpack

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
)

// ID identifies the backend in programs.
const ID = graph.ID

// Engine selects the implementation that runs graphs.
type Engine string

// Engines. EngineAuto selects the engine that is estimated to be faster for each graph. It uses the
// Go engine if the library is not available, does not support the graph, or fails. EngineNative
// returns an error if the library is missing, does not support the graph or computes it wrongly; if
// the library fails to create the graph, the Go engine runs it, with a warning. EngineGo treats NaN,
// infinities and subnormal numbers as PyTorch does; the library does not.
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
	// Unfused keeps the nodes of payloads as they are, so that Info describes the payload and not what runs fastest.
	Unfused bool
}

// ID returns the name that identifies the backend in programs.
func (Backend) ID() string { return ID }

// Probe reports the available library; without one the Go engine runs.
func (b Backend) Probe() delegate.Status {
	lib, err := xnn.Open(b.Library)
	if err != nil {
		return delegate.Status{Loaded: true, Engine: string(EngineGo), Detail: err.Error()}
	}
	return delegate.Status{Loaded: true, Engine: string(EngineNative), Detail: native.DescribeLibrary(lib) + native.DescribeFaults(lib.Soname)}
}

// Compile validates the payload and compiles it for the selected engine.
func (b Backend) Compile(ctx context.Context, p *delegate.Payload) (delegate.Image, error) {
	g, err := b.read(p)
	if err != nil {
		return nil, err
	}
	return b.compileRead(ctx, p, g)
}

// compileRead compiles the graph of a payload, which it changes.
func (b Backend) compileRead(ctx context.Context, p *delegate.Payload, g *graph.Graph) (delegate.Image, error) {
	planned := plan
	if b.Unfused {
		planned = unfused
	}
	m, err := planned(g, p.Args)
	if err != nil {
		return nil, err
	}
	m.Limits, m.Release, m.Scratch, m.ThreadCount, m.Unfused = p.Limits, p.Release, p.Scratch, p.Threads, b.Unfused
	m.DescribeOnly = p.DescribeOnly
	return b.compile(ctx, m)
}

// compile selects the engine of a planned image and prepares the image for it.
func (b Backend) compile(ctx context.Context, img *image) (delegate.Image, error) {
	if b.Engine = cmp.Or(b.Engine, EngineAuto); b.Engine == formerName {
		b.Engine = EngineGo
	}
	if !slices.Contains(Engines, b.Engine) {
		return nil, graph.Unsupported("", "engine %q, want one of %q", b.Engine, Engines)
	}
	g := img.Graph
	img.calls, img.Shown = len(g.Args), b.Values
	if b.Values {
		showValues(g)
	}
	if b.Values || b.KeepConstants {
		img.Release = nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	img.cost = g.Cost(img.Shapes)
	if b.Engine == EngineGo || img.Region && native.HidesNaN(g) {
		return b.openGo(ctx, img)
	}
	if done, err := b.choose(ctx, img); done || err != nil {
		return img, err
	}
	library := &native.Image{Compilation: img.Compilation, Cost: img.cost, InGo: &goengine.Image{Compilation: img.Compilation}, Fail: img.fail}
	err := library.Open(ctx, b.Library, b.cache())
	if img.cacheNote = library.CacheNote; err == nil {
		img.by = library
		return img, nil
	}
	opened, released := library.IsOpen(), library.HasReleased()
	library.Close()
	switch {
	case ctx.Err() != nil || released, !opened && b.Engine == EngineNative, xnn.Named(b.Library) && errors.Is(err, delegate.ErrMissing):
		return nil, err
	case opened:
		img.fail(err)
	}
	img.notNative = err.Error()
	img.noLibrary, _ = errors.AsType[*xnn.OpenError](err)
	return b.openGo(ctx, img)
}

// OutputSteps returns, for each output of a payload, how much it may change if the quantized values
// from which it is computed change by one step: the possible difference between two exact
// implementations. It is 0 for an output that is not computed from quantized values, is itself
// quantized, or for which the bound is unknown. named looks up the constants that the payload
// refers to.
func OutputSteps(payload []byte, named delegate.NamedData) ([]float64, error) {
	return graph.OutputSteps(payload, named)
}
