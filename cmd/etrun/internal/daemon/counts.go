package daemon

import (
	"net/http"
	rt "runtime/metrics"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/etrun-go/etrun/internal/collect"
	"github.com/etrun-go/etrun/runtime/metrics"
	"github.com/etrun-go/etrun/serve"
)

// counts are the metrics of the server, in addition to those of its models.
type counts struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	reloads   *prometheus.CounterVec
	succeeded *prometheus.GaugeVec
	exits     *prometheus.CounterVec
	texts     *texts
}

func newCounts(models *metrics.Collector, detail bool) *counts {
	c := &counts{registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "etrun_http_requests_total",
			Help: "HTTP requests by status; 499: the client disconnected."}, []string{"code"}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "etrun_reloads_total",
			Help: "Loads of models, including the first, by result: ok or error."}, []string{"model", "result"}),
		succeeded: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "etrun_last_reload_success_timestamp_seconds",
			Help: "When the model was last loaded."}, []string{"model"}),
		exits: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "etrun_isolated_exits_total",
			Help: "Processes of isolated models that ended unexpectedly."}, []string{"model"}),
	}
	c.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "etrun_runtime_memory_bytes",
		Help: "Memory of Go's runtime in the server: heap, stacks and what manages them. No other series counts it."}, runtimeMemory))
	c.texts = newTexts(detail)
	c.registry.MustRegister(c.texts.collectors()...)
	c.registry.MustRegister(c.requests, c.reloads, c.succeeded, c.exits, models,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return c
}

// watch sets the gauge of a model's queue.
func (c *counts) watch(m *serve.Model, models *metrics.Collector) {
	if m != nil {
		models.Model(m.Name(), "").SetQueue(m.Waiting)
	}
}

// modelsOf collects gauges of a server's models.
type modelsOf struct{ server *serve.Server }

var (
	openSequences = prometheus.NewDesc("etrun_sequences", "Open sequences.", []string{"model"}, nil)
	modelReady    = prometheus.NewDesc("etrun_model_ready", "Whether the model is loaded and ready.", []string{"model"}, nil)
	modelsMemory  = prometheus.NewDesc("etrun_models_memory_bytes", "Memory of all models that counts toward --models-memory.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s modelsOf) Describe(to chan<- *prometheus.Desc) {
	to <- openSequences
	to <- modelReady
	to <- modelsMemory
}

// Collect implements prometheus.Collector.
func (s modelsOf) Collect(to chan<- prometheus.Metric) {
	for _, m := range s.server.Models() {
		isReady := 0.0
		if m.State() == serve.Ready {
			isReady = 1
		}
		if !m.Attached() { // language models have no sequences
			to <- prometheus.MustNewConstMetric(openSequences, prometheus.GaugeValue, float64(m.Sequences()), m.Name())
		}
		to <- prometheus.MustNewConstMetric(modelReady, prometheus.GaugeValue, isReady, m.Name())
	}
	to <- prometheus.MustNewConstMetric(modelsMemory, prometheus.GaugeValue, float64(s.server.MemoryBytes()))
}

// runtimeMemory is what Go's runtime has taken from the system, and not returned.
func runtimeMemory() float64 {
	s := []rt.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	rt.Read(s)
	return float64(s[0].Value.Uint64()) - float64(s[1].Value.Uint64())
}

// reloaded counts a load. The series of failed loads exists before the first one: an increase from nothing is none for Prometheus.
func (c *counts) reloaded(model string, err error) {
	result := "ok"
	c.reloads.WithLabelValues(model, "error")
	if err != nil {
		result = "error"
	} else {
		c.succeeded.WithLabelValues(model).SetToCurrentTime()
	}
	c.reloads.WithLabelValues(model, result).Inc()
}

// remove removes the series of a model.
func (c *counts) remove(model string) {
	for _, v := range append(c.texts.collectors(), c.reloads, c.succeeded, c.exits) {
		if v, ok := v.(interface{ DeletePartialMatch(prometheus.Labels) int }); ok {
			v.DeletePartialMatch(prometheus.Labels{"model": model})
		}
	}
}

func (c *counts) answered(code int) {
	collect.Answered()
	c.requests.WithLabelValues(strconv.Itoa(code)).Inc()
}

// scrapes is the number of concurrent scrapes; one Prometheus makes one at a time.
const scrapes = 4

func (c *counts) handler() http.Handler {
	return promhttp.HandlerFor(c.registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapes})
}
