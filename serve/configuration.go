package serve

import (
	"context"

	"github.com/etrun-go/etrun/serve/oip"
)

// Configuration is a model's configuration as Triton's clients read it: of a method, a version of the model.
type Configuration struct {
	Name         string             `json:"name"`
	Platform     string             `json:"platform"`
	Backend      string             `json:"backend"`
	MaxBatchSize int                `json:"max_batch_size"`
	Inputs       []ConfiguredTensor `json:"input"`
	Outputs      []ConfiguredTensor `json:"output"`
	Instances    []InstanceGroup    `json:"instance_group"`
	Batching     *DynamicBatching   `json:"dynamic_batching,omitempty"`
	Parameters   map[string]any     `json:"parameters"`
	Transactions TransactionPolicy  `json:"model_transaction_policy"`
}

// ConfiguredTensor describes an input or output. If the model is batched, dims lack the first one.
type ConfiguredTensor struct {
	Name     string `json:"name"`
	DataType string `json:"data_type"`
	Dims     []int  `json:"dims"`
	Optional bool   `json:"optional,omitempty"`
}

// InstanceGroup are the instances that run at once.
type InstanceGroup struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// DynamicBatching is the time that a batch waits for requests, in microseconds.
type DynamicBatching struct {
	Delay int64 `json:"max_queue_delay_microseconds"`
}

// TransactionPolicy says whether a request has several answers, which none has.
type TransactionPolicy struct {
	Decoupled bool `json:"decoupled"`
}

// Configuration returns the configuration of a method, as ModelMetadata describes it.
func (s *Server) Configuration(ctx context.Context, model, method string) (c Configuration, err error) {
	err = s.find(ctx, model, method, func(_ *version, e *endpoint) { c = e.configuration() })
	return c, err
}

func (e *endpoint) configuration() Configuration {
	c := &e.version.model.config
	batched := e.batches != nil
	out := Configuration{Name: c.Name, Platform: platform, Backend: "executorch", Inputs: configuredTensors(e.inputs, batched, true),
		Outputs: configuredTensors(e.outputs, batched, false), Instances: []InstanceGroup{{c.Name, "KIND_CPU", c.Instances}},
		Parameters: map[string]any{}}
	if batched {
		out.MaxBatchSize, out.Batching = c.MaxBatch, &DynamicBatching{c.BatchDelay.Microseconds()}
	}
	return out
}

func configuredTensors(slots []slot, batched, inputs bool) []ConfiguredTensor {
	list := make([]ConfiguredTensor, len(slots))
	for i := range slots {
		s := &slots[i]
		list[i] = ConfiguredTensor{Name: s.name, DataType: dataType(s.datatype), Dims: s.shape(), Optional: inputs && s.optional()}
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
