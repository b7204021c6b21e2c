package grpc

import (
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/grpc/inference"
)

// each converts the elements of a list.
func each[A, B any](list []A, f func(*A) B) []B {
	out := make([]B, len(list))
	for i := range list {
		out[i] = f(&list[i])
	}
	return out
}

func sizes(shape []int) []int64 { return each(shape, func(n *int) int64 { return int64(*n) }) }

func metadataOf(t *serve.TensorMetadata) *inference.ModelMetadataResponse_TensorMetadata {
	return &inference.ModelMetadataResponse_TensorMetadata{Name: t.Name, Datatype: string(t.Datatype), Shape: sizes(t.Shape)}
}

func dataType(name string) inference.DataType {
	return inference.DataType(inference.DataType_value[name])
}

func configOf(c *serve.Configuration) *inference.ModelConfig {
	out := &inference.ModelConfig{Name: c.Name, Platform: c.Platform, Backend: c.Backend, MaxBatchSize: int32(c.MaxBatchSize),
		ModelTransactionPolicy: &inference.ModelTransactionPolicy{Decoupled: c.Transactions.Decoupled},
		Input: each(c.Inputs, func(t *serve.ConfiguredTensor) *inference.ModelInput {
			return &inference.ModelInput{Name: t.Name, DataType: dataType(t.DataType), Dims: sizes(t.Dims), Optional: t.Optional}
		}),
		Output: each(c.Outputs, func(t *serve.ConfiguredTensor) *inference.ModelOutput {
			return &inference.ModelOutput{Name: t.Name, DataType: dataType(t.DataType), Dims: sizes(t.Dims)}
		}),
		InstanceGroup: each(c.Instances, func(g *serve.InstanceGroup) *inference.ModelInstanceGroup {
			kind := inference.ModelInstanceGroup_Kind(inference.ModelInstanceGroup_Kind_value[g.Kind])
			return &inference.ModelInstanceGroup{Name: g.Name, Kind: kind, Count: int32(g.Count)}
		}),
	}
	if c.Batching != nil {
		out.SchedulingChoice = &inference.ModelConfig_DynamicBatching{
			DynamicBatching: &inference.ModelDynamicBatching{MaxQueueDelayMicroseconds: uint64(c.Batching.Delay)}}
	}
	return out
}

func durationOf(d *serve.DurationStatistics) *inference.StatisticDuration {
	return &inference.StatisticDuration{Count: uint64(d.Count), Ns: uint64(d.NS)}
}

func statisticsOf(m *serve.ModelStatistics) *inference.ModelStatistics {
	s := &m.Stats
	return &inference.ModelStatistics{Name: m.Name, Version: m.Version, LastInference: uint64(m.Last), InferenceCount: uint64(m.Inferences),
		ExecutionCount: uint64(m.Executions), InferenceStats: &inference.InferStatistics{
			Success: durationOf(&s.Success), Fail: durationOf(&s.Fail), Queue: durationOf(&s.Queue),
			ComputeInput: durationOf(&s.Input), ComputeInfer: durationOf(&s.Infer), ComputeOutput: durationOf(&s.Output),
			CacheHit: durationOf(&s.CacheHit), CacheMiss: durationOf(&s.CacheMiss)}}
}

func indexOf(m *serve.ModelIndex) *inference.RepositoryIndexResponse_ModelIndex {
	return &inference.RepositoryIndexResponse_ModelIndex{Name: m.Name, Version: m.Version, State: string(m.State), Reason: m.Reason}
}

// parametersOf returns parameters as those of JSON are. One without a value is absent, as null is.
func parametersOf(list map[string]*inference.ModelRepositoryParameter) map[string]any {
	out := make(map[string]any)
	for name, p := range list {
		out[name] = nil
		if p != nil && p.ParameterChoice != nil {
			out[name] = p.ParameterChoice
		}
	}
	return out
}
