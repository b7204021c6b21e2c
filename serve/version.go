package serve

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve/oip"
)

// version is an open program and its methods. It is closed when it has no users: the model counts
// as one user while the version is current.
type version struct {
	model     *Model
	program   Program
	endpoints []*endpoint
	attached  Attachment // nil for none
	sequences *sequences
	tensors   buffers // from alloc
	answers   buffers
	headers   oip.Cache
	bytes     int64 // memory, for the limit of all models
	users     atomic.Int64
	closed    chan struct{}
}

// open opens the program of a model and tests its methods.
func (m *Model) open(ctx context.Context) (*version, error) {
	program, err := m.config.Start(ctx)
	if err != nil {
		return nil, err
	}
	v := &version{model: m, program: program, closed: make(chan struct{})}
	v.users.Store(1)
	v.tensors.max, v.answers.max = 8*m.config.Instances*m.config.MaxBatch, 2*m.config.Instances*m.config.MaxBatch
	v.sequences = newSequences(v, m.config.Sequences)
	if err := v.prepare(ctx); err != nil {
		v.release()
		return nil, err
	}
	return v, nil
}

// prepare creates the endpoints.
func (v *version) prepare(ctx context.Context) error {
	if v.model.Attached() {
		return v.attach(ctx)
	}
	methods := v.model.config.Methods
	if len(methods) == 0 {
		methods = v.program.MethodNames()
	}
	for _, name := range methods {
		e, err := newEndpoint(v, name)
		if err != nil {
			return err
		}
		v.endpoints = append(v.endpoints, e)
		if err := e.prepare(ctx); err != nil {
			return fmt.Errorf("self-test: %w", err)
		}
	}
	if len(v.endpoints) == 0 {
		return fmt.Errorf("the program has no methods")
	}
	return nil
}

// release ends a use; the last one closes the program.
func (v *version) release() {
	if v.users.Add(-1) > 0 {
		return
	}
	v.sequences.close()
	if v.attached != nil {
		_ = v.attached.Close() // frees memory only
	}
	for _, e := range v.endpoints {
		if e.pool != nil {
			_ = e.pool.Close() // frees memory only
		}
	}
	_ = v.program.Close()
	v.model.common.closed(v)
	close(v.closed)
}

// endpoint finds a method. The empty name means "forward", or the only method.
func (v *version) endpoint(name string) (*endpoint, error) {
	if v.model.config.Version == name {
		name = ""
	}
	i := slices.IndexFunc(v.endpoints, func(e *endpoint) bool { return e.method == name || name == "" && e.method == "forward" })
	if i < 0 && name == "" && len(v.endpoints) == 1 {
		i = 0
	}
	if v.attached != nil {
		return nil, fmt.Errorf("%w: methods of model %q in this protocol", ErrUnknown, v.model.config.Name)
	}
	if i < 0 {
		return nil, fmt.Errorf("%w: method %q of model %q, which has %q", ErrUnknown, name, v.model.config.Name, v.methods())
	}
	return v.endpoints[i], nil
}

func (v *version) methods() (names []string) {
	for _, e := range v.endpoints {
		names = append(names, e.method)
	}
	return names
}

// Bounds of a request, in addition to its tensors.
const (
	headerBytes = 64 << 10
	jsonElement = 32 // bytes of an element in JSON, separators included
	minInputs   = 64
)

// limits returns the limits of a request to the version.
func (v *version) limits(body int64) oip.Limits {
	l := oip.Limits{Header: headerBytes, Body: headerBytes, Tensors: headerBytes, Inputs: minInputs, Alloc: v.alloc, Cache: &v.headers}
	for _, e := range v.endpoints {
		bytes, elements, ok := e.maxBytes()
		if !ok || elements > body/jsonElement {
			bytes, elements = min(bytes, body), body/jsonElement
			if !ok {
				bytes = body
			}
		}
		l.Tensors = max(l.Tensors, min(bytes, body))
		l.Body = max(l.Body, min(body, headerBytes+max(bytes, elements*jsonElement)))
		l.Inputs = max(l.Inputs, len(e.inputs), len(e.outputs))
	}
	return l
}

// alloc returns memory for a tensor, with arbitrary contents.
func (v *version) alloc(n int) []byte {
	if b := v.tensors.get(n); b != nil {
		return b
	}
	return tensor.AlignedBytes(n)
}

// Try runs each method once on random inputs, in the queue of requests. It skips a model that is
// not loaded.
func (m *Model) Try(ctx context.Context) error {
	v, err := m.acquire()
	if err != nil {
		return nil
	}
	defer v.release()
	for _, e := range v.endpoints {
		if err := m.tryEndpoint(ctx, e); err != nil {
			return err
		}
	}
	if v.attached != nil {
		return m.tryAttached(ctx, v.attached)
	}
	return nil
}

func (m *Model) tryEndpoint(ctx context.Context, e *endpoint) error {
	end, err := m.queue.acquire(ctx)
	if err != nil {
		return err
	}
	defer end()
	return e.try(ctx)
}
