package serve

import (
	"context"
	"fmt"
	"slices"
)

// LoadModel loads or reloads a model for a request, if requests may do that; see Options.Control. It continues if the client
// disconnects. Parameters that would change the load are refused.
func (s *Server) LoadModel(name string, parameters map[string]any) error {
	m, err := s.controlled(name, parameters)
	if err != nil {
		return err
	}
	return m.Load(s.common.ctx)
}

// UnloadModel unloads a model for a request, if requests may do that. No model has others that depend on it.
func (s *Server) UnloadModel(ctx context.Context, name string, parameters map[string]any) error {
	m, err := s.controlled(name, parameters, "unload_dependents")
	if err != nil {
		return err
	}
	return m.Unload(ctx)
}

// controlled returns the model that a request loads or unloads. Parameters without effect are listed in ignored.
func (s *Server) controlled(name string, parameters map[string]any, ignored ...string) (*Model, error) {
	if err := s.mayControl(); err != nil {
		return nil, err
	}
	for name, value := range parameters {
		if value != nil && !slices.Contains(ignored, name) {
			return nil, fmt.Errorf("%w: %.40q", errNoLoad, name)
		}
	}
	return s.named(name)
}

func (s *Server) mayControl() error {
	if !s.options.Control {
		return errControl
	}
	return nil
}
