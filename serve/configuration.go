package serve

import (
	"net/http"

	"github.com/etrun-go/etrun/serve/oip"
)

// configuration is a model's configuration as Triton's clients read it: of a method, a version of the model.
type configuration struct {
	Name         string             `json:"name"`
	Platform     string             `json:"platform"`
	Backend      string             `json:"backend"`
	MaxBatchSize int                `json:"max_batch_size"`
	Inputs       []configuredTensor `json:"input"`
	Outputs      []configuredTensor `json:"output"`
	Instances    []instanceGroup    `json:"instance_group"`
	Batching     *dynamicBatching   `json:"dynamic_batching,omitempty"`
	Parameters   map[string]any     `json:"parameters"`
	Transactions transactionPolicy  `json:"model_transaction_policy"`
}

// configuredTensor describes an input or output. If the model is batched, dims lack the first one.
type configuredTensor struct {
	Name     string `json:"name"`
	DataType string `json:"data_type"`
	Dims     []int  `json:"dims"`
	Optional bool   `json:"optional,omitempty"`
}

type instanceGroup struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

type dynamicBatching struct {
	Delay int64 `json:"max_queue_delay_microseconds"`
}

type transactionPolicy struct {
	Decoupled bool `json:"decoupled"`
}

// configuration answers the configuration of a model's method.
func (s *Server) configuration(w http.ResponseWriter, r *http.Request) {
	err := s.find(r, func(_ *version, e *endpoint) { answer(w, http.StatusOK, e.configuration()) })
	if err != nil {
		fail(w, err)
	}
}

func (e *endpoint) configuration() configuration {
	c := &e.version.model.config
	batched := e.batches != nil
	out := configuration{Name: c.Name, Platform: platform, Backend: "executorch", Inputs: configuredTensors(e.inputs, batched, true),
		Outputs: configuredTensors(e.outputs, batched, false), Instances: []instanceGroup{{c.Name, "KIND_CPU", c.Instances}},
		Parameters: map[string]any{}}
	if batched {
		out.MaxBatchSize, out.Batching = c.MaxBatch, &dynamicBatching{c.BatchDelay.Microseconds()}
	}
	return out
}

func configuredTensors(slots []slot, batched, inputs bool) []configuredTensor {
	list := make([]configuredTensor, len(slots))
	for i := range slots {
		s := &slots[i]
		list[i] = configuredTensor{Name: s.name, DataType: dataType(s.datatype), Dims: s.shape(), Optional: inputs && s.optional()}
		if batched {
			list[i].Dims = list[i].Dims[1:]
		}
	}
	return list
}

// dataType is the name of a datatype in configurations.
func dataType(d oip.Datatype) string {
	if d == oip.Bytes {
		return "TYPE_STRING"
	}
	return "TYPE_" + string(d)
}
