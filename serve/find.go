package serve

import (
	"fmt"
	"net/http"
)

// platform is the kind of all models.
const platform = "executorch_pte"

// acquire finds the model of a request.
func (s *Server) acquire(r *http.Request) (*Model, *version, error) {
	m := s.Model(r.PathValue("model"))
	if m == nil {
		return nil, nil, fmt.Errorf("%w: model %.140q", ErrUnknown, r.PathValue("model"))
	}
	v, err := m.acquire()
	return m, v, err
}

// find calls use with the method of a request about a model.
func (s *Server) find(r *http.Request, use func(v *version, e *endpoint)) error {
	_, v, err := s.acquire(r)
	if err != nil {
		return err
	}
	defer v.release()
	name := r.PathValue("version")
	e, err := v.endpoint(name)
	if err != nil && name == "" && len(v.endpoints) > 0 { // several methods, none of them named "forward"
		e, err = v.endpoints[0], nil
	}
	if err != nil {
		return err
	}
	use(v, e)
	return nil
}
