package serve

import (
	"context"
	"slices"
	"time"

	"github.com/etrun-go/etrun/serve/oip"
)

// ServerMetadata describes the server.
type ServerMetadata struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Extensions []string `json:"extensions"`
}

// Metadata describes the server.
func (s *Server) Metadata() ServerMetadata {
	extensions := []string{"binary_tensor_data", "sequence", "parameters", "model_configuration", "statistics", "classification"}
	if s.options.Control {
		extensions = append(extensions, "model_repository", "model_repository(unload_dependents)")
	}
	return ServerMetadata{"etrun", s.options.Version, extensions}
}

// ModelMetadata describes a method of a model.
type ModelMetadata struct {
	Name     string           `json:"name"`
	Versions []string         `json:"versions"` // the methods
	Platform string           `json:"platform"`
	Inputs   []TensorMetadata `json:"inputs"`
	Outputs  []TensorMetadata `json:"outputs"`
}

// TensorMetadata describes an input or output. Shape has -1 for sizes that vary, up to MaxShape.
type TensorMetadata struct {
	Name     string       `json:"name"`
	Datatype oip.Datatype `json:"datatype"`
	Shape    []int        `json:"shape"`
	MaxShape []int        `json:"max_shape,omitempty"`
	Optional bool         `json:"optional,omitempty"`
}

func tensorMetadata(slots []slot, inputs bool) []TensorMetadata {
	list := make([]TensorMetadata, len(slots))
	for i := range slots {
		s := &slots[i]
		list[i] = TensorMetadata{Name: s.name, Datatype: s.datatype, Shape: s.shape(), Optional: inputs && s.optional()}
		if slices.Contains(list[i].Shape, -1) {
			list[i].MaxShape = s.meta.Sizes
		}
	}
	return list
}

// ModelMetadata describes a method of a model, which is loaded if it is loaded on demand. The empty method is the default, or the
// first one.
func (s *Server) ModelMetadata(ctx context.Context, model, method string) (about ModelMetadata, err error) {
	_, v, err := s.need(ctx, model, time.Now())
	if err != nil {
		return about, aboutModel(err)
	}
	defer v.done()
	about = ModelMetadata{model, []string{}, platform, []TensorMetadata{}, []TensorMetadata{}}
	if v.attached != nil && method == "" { // a model that answers in another protocol has no methods here
		return about, nil
	}
	e, err := v.pick(method)
	if err != nil {
		return about, err
	}
	about.Versions, about.Inputs, about.Outputs = v.methods(), tensorMetadata(e.inputs, true), tensorMetadata(e.outputs, false)
	return about, nil
}

// ModelReady returns an error if a method of a model is not loaded. It loads none.
func (s *Server) ModelReady(model, method string) error {
	m, err := s.named(model)
	if err != nil {
		return err
	}
	v, err := m.acquire()
	if err != nil {
		return aboutModel(err)
	}
	defer v.release()
	if v.attached != nil && method == "" {
		return nil
	}
	_, err = v.pick(method)
	return err
}

// ModelIndex is a method of a model in the list of all models, or a model that has none.
type ModelIndex struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	State   State  `json:"state"`
	Reason  string `json:"reason"`
}

// Index lists all models, or only those that are ready.
func (s *Server) Index(ready bool) []ModelIndex {
	list := []ModelIndex{}
	for _, m := range s.Models() {
		row, v := m.indexed()
		if ready && row.State != Ready {
			continue
		}
		if v == nil || len(v.endpoints) == 0 {
			list = append(list, row)
			continue
		}
		for _, row.Version = range v.methods() {
			list = append(list, row)
		}
	}
	return list
}

// indexed returns the model's row, without a version, and its current version, nil if none.
func (m *Model) indexed() (row ModelIndex, v *version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	row.Name = m.config.Name
	row.State, row.Reason = m.now()
	return row, m.current
}
