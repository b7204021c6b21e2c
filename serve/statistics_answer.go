package serve

import "net/http"

// durationAnswer is the JSON form of a duration.
type durationAnswer struct {
	Count int64 `json:"count"`
	NS    int64 `json:"ns"`
}

func (d *duration) answer() durationAnswer { return durationAnswer{d.count.Load(), d.ns.Load()} }

// statisticsAnswer are the statistics of methods.
type statisticsAnswer struct {
	Models []modelStatistics `json:"model_stats"`
}

// modelStatistics are the statistics of a method, a version of the model. Times are in nanoseconds. Requests are not cached, and
// batches are not listed by size.
type modelStatistics struct {
	Name       string              `json:"name"`
	Version    string              `json:"version"`
	Last       int64               `json:"last_inference"`
	Inferences int64               `json:"inference_count"`
	Executions int64               `json:"execution_count"`
	Stats      inferenceStatistics `json:"inference_stats"`
	Batches    []struct{}          `json:"batch_stats"`
	Memory     []struct{}          `json:"memory_usage"`
}

// inferenceStatistics are the times of requests, and of their parts.
type inferenceStatistics struct {
	Success   durationAnswer `json:"success"`
	Fail      durationAnswer `json:"fail"`
	Queue     durationAnswer `json:"queue"`
	Input     durationAnswer `json:"compute_input"`
	Infer     durationAnswer `json:"compute_infer"`
	Output    durationAnswer `json:"compute_output"`
	CacheHit  durationAnswer `json:"cache_hit"`
	CacheMiss durationAnswer `json:"cache_miss"`
}

func (e *endpoint) statisticsAnswer() modelStatistics {
	s := &e.statistics
	return modelStatistics{Name: e.version.model.config.Name, Version: e.method, Last: s.last.Load(), Inferences: s.requests.Load(), Executions: s.runs.Load(),
		Stats: inferenceStatistics{Success: s.success.answer(), Fail: s.fail.answer(), Queue: s.queue.answer(), Input: s.input.answer(),
			Infer: s.infer.answer(), Output: s.output.answer()},
		Batches: []struct{}{}, Memory: []struct{}{}}
}

// allStatistics answers the statistics of all loaded models.
func (s *Server) allStatistics(w http.ResponseWriter, _ *http.Request) {
	all := statisticsAnswer{[]modelStatistics{}}
	for _, m := range s.Models() {
		if v, err := m.acquire(); err == nil {
			all.add(v)
			v.release()
		}
	}
	answer(w, http.StatusOK, all)
}

func (a *statisticsAnswer) add(v *version) {
	for _, e := range v.endpoints {
		a.Models = append(a.Models, e.statisticsAnswer())
	}
}

// modelStatistics answers the statistics of a model's methods, or of the one that the version names.
func (s *Server) modelStatistics(w http.ResponseWriter, r *http.Request) {
	all := statisticsAnswer{[]modelStatistics{}}
	m, err := s.modelOf(r)
	if err != nil {
		fail(w, err)
		return
	}
	v, err := m.acquire()
	if err == nil {
		defer v.release()
		if name := r.PathValue("version"); name == "" {
			all.add(v)
		} else if e, missing := v.endpoint(name); missing == nil {
			all.Models = append(all.Models, e.statisticsAnswer())
		} else {
			err = missing
		}
	}
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, all)
}
