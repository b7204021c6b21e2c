// Package xnnpack runs the payloads of ExecuTorch's XNNPACK delegate: graphs of
// neural network operations.
//
// A payload is read and checked in Go, byte by byte, into a [Graph]. Two engines run
// graphs: the native one hands them to libXNNPACK, the reference one computes them in
// Go, on any machine. Each kind of node is one row of a table, where its reading,
// checking, shapes, hand-over to the library and reference stand together.
package xnnpack

import (
	"context"
	"fmt"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
)

// Options of a payload, by key of delegate.Payload.Options.
const (
	// OptionEngine is EngineAuto, EngineNative or EngineReference.
	OptionEngine = "engine"
	// OptionLibrary is libXNNPACK's file or folder, see [xnn.Open].
	OptionLibrary = "library"
	// OptionWeights is a folder where packed weights are kept for other processes.
	OptionWeights = "weights-cache"
)

// Engines. Auto is the native one where the library is and can run the graph, else
// the reference.
const (
	EngineAuto      = "auto"
	EngineNative    = "native"
	EngineReference = "reference"
)

// Backend compiles payloads of the XNNPACK delegate. The zero value is ready.
type Backend struct{}

// ID is the name of the backend in programs.
func (Backend) ID() string { return ID }

// Probe says which library there is; without one the reference engine runs.
func (Backend) Probe() delegate.Status {
	lib, err := xnn.Open("")
	if err != nil {
		return delegate.Status{Loaded: true, Engine: EngineReference, Detail: err.Error()}
	}
	return delegate.Status{Loaded: true, Engine: EngineNative, Detail: describeLibrary(lib)}
}

func describeLibrary(lib *xnn.Library) string {
	if lib.PoolStalls {
		return lib.Path + ", one thread: its thread pool stalls on busy processors"
	}
	return lib.Path
}

// options are the decoded options of a payload.
type options struct {
	engine, library, weights string
}

func readOptions(m map[string]any) (options, error) {
	o := options{engine: EngineAuto}
	for key, to := range map[string]*string{OptionEngine: &o.engine, OptionLibrary: &o.library, OptionWeights: &o.weights} {
		value, ok := m[key]
		if !ok {
			continue
		}
		text, ok := value.(string)
		if !ok {
			return o, fmt.Errorf("option %q: got %T, want string", key, value)
		}
		*to = text
	}
	switch o.engine {
	case EngineAuto, EngineNative, EngineReference:
		return o, nil
	}
	return o, fmt.Errorf("option %q: got %q, want %q, %q or %q", OptionEngine, o.engine, EngineAuto, EngineNative, EngineReference)
}

// Compile reads and checks the payload, and makes an image for the engine that the
// options ask for.
func (Backend) Compile(ctx context.Context, p *delegate.Payload) (delegate.Image, error) {
	o, err := readOptions(p.Options)
	if err != nil {
		return nil, &delegate.Error{Backend: ID, Reason: delegate.ErrUnsupported, Err: err}
	}
	g, err := readGraph(p.Data, p.Named)
	if err != nil {
		return nil, err
	}
	shapes, err := g.repair()
	if err != nil {
		return nil, err
	}
	g.fuse(shapes)
	if len(p.Args) > 0 && len(p.Args) != len(g.Args) {
		return nil, payloadError("", "the call has %d arguments, the payload %d", len(p.Args), len(g.Args))
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	img := &image{graph: g, shapes: shapes, cost: g.cost(shapes), limits: p.Limits}
	if o.engine == EngineReference {
		return img.openReference()
	}
	err = img.openNative(o)
	if err == nil {
		return img, nil
	}
	img.Close()
	if o.engine == EngineNative {
		return nil, err
	}
	img.whyReference = err.Error()
	return img.openReference()
}

// openReference makes the image one of the Go engine.
func (m *image) openReference() (delegate.Image, error) {
	m.native = false
	m.needs = m.graph.referenceNeeds(m.shapes, cpu.DefaultThreads())
	if err := m.needs.check(m.limits); err != nil {
		return nil, err
	}
	return m, nil
}
