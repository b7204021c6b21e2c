package serve

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// platform is the kind of all models.
const platform = "executorch_pte"

// modelOf finds the model of a request.
func (s *Server) modelOf(r *http.Request) (*Model, error) {
	m := s.Model(r.PathValue("model"))
	if m == nil {
		return nil, fmt.Errorf("%w: model %.140q", ErrUnknown, r.PathValue("model"))
	}
	return m, nil
}

// need finds the model of a request that has arrived then, and loads it if it is loaded on demand. The caller must call the
// version's method done.
func (s *Server) need(r *http.Request, arrived time.Time) (*Model, *version, error) {
	m, err := s.modelOf(r)
	if err != nil {
		return nil, nil, err
	}
	v, d, err := m.join()
	if d != nil {
		limit := m.config.Timeout
		ctx, cancel := context.WithDeadlineCause(r.Context(), arrived.Add(limit), &lateError{limit})
		defer cancel()
		v, err = d.wait(ctx)
	}
	return m, v, err
}

// find calls use with the method of a request about a model.
func (s *Server) find(r *http.Request, use func(v *version, e *endpoint)) error {
	_, v, err := s.need(r, time.Now())
	if err != nil {
		return err
	}
	defer v.done()
	e, err := v.pick(r.PathValue("version"))
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
