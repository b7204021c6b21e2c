package serve

import (
	"context"
	"fmt"
	"time"
)

// platform is the kind of all models.
const platform = "executorch_pte"

// named finds a model.
func (s *Server) named(name string) (*Model, error) {
	if m := s.Model(name); m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("%w: model %.140q", ErrUnknown, name)
}

// need finds the model of a request that has arrived then, and loads it if it is loaded on demand. The caller must call the
// version's method done.
func (s *Server) need(ctx context.Context, name string, arrived time.Time) (*Model, *version, error) {
	m, err := s.named(name)
	if err != nil {
		return nil, nil, err
	}
	v, d, err := m.join()
	if d != nil {
		limit := m.config.Timeout
		ctx, cancel := context.WithDeadlineCause(ctx, arrived.Add(limit), &overdueError{limit})
		defer cancel()
		v, err = d.wait(ctx)
	}
	return m, v, err
}

// find calls use with a method of a model, for a request about it.
func (s *Server) find(ctx context.Context, model, method string, use func(v *version, e *endpoint)) error {
	_, v, err := s.need(ctx, model, time.Now())
	if err != nil {
		return err
	}
	defer v.done()
	e, err := v.pick(method)
	if err != nil {
		return err
	}
	use(v, e)
	return nil
}

// pick finds a method for a request about it. The empty name means the default, or the first one.
func (v *version) pick(name string) (*endpoint, error) {
	e, err := v.endpoint(name)
	if err != nil && name == "" && len(v.endpoints) > 0 { // several methods, none of them named "forward"
		return v.endpoints[0], nil
	}
	return e, err
}
