package serve

// DurationStatistics is the JSON form of a duration.
type DurationStatistics struct {
	Count int64 `json:"count"`
	NS    int64 `json:"ns"`
}

func (d *duration) answer() DurationStatistics {
	return DurationStatistics{d.count.Load(), d.ns.Load()}
}

// statisticsAnswer are the statistics of methods.
type statisticsAnswer struct {
	Models []ModelStatistics `json:"model_stats"`
}

// ModelStatistics are the statistics of a method, a version of the model. Times are in nanoseconds. Requests are not cached, and
// batches are not listed by size.
type ModelStatistics struct {
	Name       string              `json:"name"`
	Version    string              `json:"version"`
	Last       int64               `json:"last_inference"`
	Inferences int64               `json:"inference_count"`
	Executions int64               `json:"execution_count"`
	Stats      InferenceStatistics `json:"inference_stats"`
	Batches    []struct{}          `json:"batch_stats"`
	Memory     []struct{}          `json:"memory_usage"`
}

// InferenceStatistics are the times of requests, and of their parts.
type InferenceStatistics struct {
	Success   DurationStatistics `json:"success"`
	Fail      DurationStatistics `json:"fail"`
	Queue     DurationStatistics `json:"queue"`
	Input     DurationStatistics `json:"compute_input"`
	Infer     DurationStatistics `json:"compute_infer"`
	Output    DurationStatistics `json:"compute_output"`
	CacheHit  DurationStatistics `json:"cache_hit"`
	CacheMiss DurationStatistics `json:"cache_miss"`
}

func (e *endpoint) statisticsAnswer() ModelStatistics {
	s := &e.statistics
	return ModelStatistics{Name: e.version.model.config.Name, Version: e.method, Last: s.last.Load(), Inferences: s.requests.Load(), Executions: s.runs.Load(),
		Stats: InferenceStatistics{Success: s.success.answer(), Fail: s.fail.answer(), Queue: s.queue.answer(), Input: s.input.answer(),
			Infer: s.infer.answer(), Output: s.output.answer()},
		Batches: []struct{}{}, Memory: []struct{}{}}
}

// AllStatistics returns the statistics of all loaded models.
func (s *Server) AllStatistics() []ModelStatistics {
	list := []ModelStatistics{}
	for _, m := range s.Models() {
		if v, err := m.acquire(); err == nil {
			list = append(list, v.statistics()...)
			v.release()
		}
	}
	return list
}

func (v *version) statistics() (list []ModelStatistics) {
	for _, e := range v.endpoints {
		list = append(list, e.statisticsAnswer())
	}
	return list
}

// Statistics returns the statistics of a model's methods, or of one of them.
func (s *Server) Statistics(model, method string) ([]ModelStatistics, error) {
	m, err := s.named(model)
	if err != nil {
		return nil, err
	}
	v, err := m.acquire()
	if err != nil {
		return nil, err
	}
	defer v.release()
	if method == "" {
		return append([]ModelStatistics{}, v.statistics()...), nil
	}
	e, err := v.endpoint(method)
	if err != nil {
		return nil, err
	}
	return []ModelStatistics{e.statisticsAnswer()}, nil
}
