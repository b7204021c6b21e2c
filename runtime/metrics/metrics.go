// Package metrics exports metrics of programs to Prometheus. Register a [Collector] once, and
// observe each program with a [Model] of it:
//
//	c := metrics.New(metrics.Options{})
//	prometheus.MustRegister(c)
//	model := c.Model("mobilenet_v2", digest)
//	prog, err := etrun.Open(path, etrun.WithObserver(model))
//	pool, err := prog.NewPool("forward", 4, etrun.WithQueue(64))
//	model.SetQueue(func() int { return pool.Stats().Waiting })
//
// The metrics are:
//
//	etrun_build_info{version,go_version,xnnpack,ethosu}            1
//	etrun_model_info{model,method,sha256}                          1 for each loaded method
//	etrun_inference_duration_seconds{model,method,backend}         histogram of successful runs
//	etrun_inferences_total{model,method,result}                    runs by result: ok or error
//	etrun_inferences_in_flight{model}                              current runs
//	etrun_errors_total{model,reason}                               failed opens, loads, waits and runs
//	etrun_delegate_duration_seconds{model,backend}                 sum and count of delegate calls
//	etrun_queue_wait_seconds{model}                                histogram of waits for an instance of a pool
//	etrun_queue_length{model}                                      waiting callers
//	etrun_queue_rejected_total{model}                              callers rejected because the queue was full
//	etrun_model_load_duration_seconds{model,stage}                 sum and count of opens and loads: open or load
//	etrun_memory_bytes{model,kind}                                 memory by kind; kinds are disjoint
//
// Kinds of memory are those of package trace, reasons those of trace.Event. The backend
// of a method is the list of its delegates' backend IDs joined by "+", or "portable". Histograms
// are both classic and native. A model of one method on one backend has about 45 series. With
// Options.Detail, delegate calls and loads are histograms as well, those of loads for each stage of
// package trace instead: about 370 series. An event costs a few atomic operations and, once its series
// exist, no allocation.
package metrics

import (
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/etrun-go/etrun/delegate"
)

// Options configures a collector. The zero value is ready to use.
type Options struct {
	// Version is the version of the program that links etrun; the default is that of its main
	// module.
	Version string
	// Backends are probed for their engines, for etrun_build_info. The engine of other backends is
	// "none".
	Backends []delegate.Backend
	// Detail has histograms for delegate calls and for each stage of loads, instead of sums and counts.
	Detail bool
	// Buckets are the upper bounds of the classic histograms in seconds; the default is 50 µs to 13
	// s, each four times the last one, and with Detail 50 µs to 26 s, doubling. An empty list that is not
	// nil disables the classic histograms.
	Buckets []float64
	// Factor is the maximum ratio of adjacent buckets of the native histograms, 1.1 by default. 1
	// disables the native histograms.
	Factor float64
}

// maxNativeBuckets limits the buckets of a native histogram; resetAfter is the minimum time between
// resets that enforce it.
const (
	maxNativeBuckets = 160
	resetAfter       = time.Hour
)

// Collector is a prometheus.Collector for any number of models. It is safe for concurrent use.
type Collector struct {
	build      prometheus.Gauge
	info       *prometheus.GaugeVec
	inference  *prometheus.HistogramVec
	inferences *prometheus.CounterVec
	inFlight   *prometheus.GaugeVec
	errors     *prometheus.CounterVec
	delegates  prometheus.ObserverVec
	wait       *prometheus.HistogramVec
	rejected   *prometheus.CounterVec
	load       prometheus.ObserverVec
	memory     *prometheus.GaugeVec
	length     *prometheus.Desc
	detail     bool

	mu     sync.Mutex
	models map[string]*Model
}

// New returns a collector.
func New(o Options) *Collector {
	switch {
	case o.Buckets != nil:
	case o.Detail:
		o.Buckets = prometheus.ExponentialBuckets(50e-6, 2, 20)
	default:
		o.Buckets = prometheus.ExponentialBuckets(50e-6, 4, 10)
	}
	if o.Factor == 0 {
		o.Factor = 1.1
	}
	c := &Collector{models: make(map[string]*Model), build: buildInfo(&o), detail: o.Detail}
	c.info = gauge("etrun_model_info", "Loaded methods, with the digest of their program.", "model", "method", "sha256")
	c.inference = o.histogram("etrun_inference_duration_seconds", "Duration of successful runs.", "model", "method", "backend")
	c.inferences = counter("etrun_inferences_total", "Runs by result: ok or error.", "model", "method", "result")
	c.inFlight = gauge("etrun_inferences_in_flight", "Current runs.", "model")
	c.errors = counter("etrun_errors_total", "Failed opens, loads, waits and runs.", "model", "reason")
	c.delegates = o.durations("etrun_delegate_duration_seconds", "Duration of delegate calls.", "model", "backend")
	c.wait = o.histogram("etrun_queue_wait_seconds", "Time callers waited for a method instance.", "model")
	c.rejected = counter("etrun_queue_rejected_total", "Callers rejected because the queue was full.", "model")
	c.load = o.durations("etrun_model_load_duration_seconds", "Duration of opens and loads, or of their stages.", "model", "stage")
	c.memory = gauge("etrun_memory_bytes", "Memory by kind. Kinds are disjoint.", "model", "kind")
	c.length = prometheus.NewDesc("etrun_queue_length", "Callers waiting for a method instance.", []string{"model"}, nil)
	return c
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func (o *Options) histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	h := prometheus.HistogramOpts{Name: name, Help: help, Buckets: o.Buckets}
	if o.Factor > 1 {
		h.NativeHistogramBucketFactor = o.Factor
		h.NativeHistogramMaxBucketNumber, h.NativeHistogramMinResetDuration = maxNativeBuckets, resetAfter
	}
	return prometheus.NewHistogramVec(h, labels)
}

// durations returns a histogram with Detail, else sums and counts.
func (o *Options) durations(name, help string, labels ...string) prometheus.ObserverVec {
	if o.Detail {
		return o.histogram(name, help, labels...)
	}
	return prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: name, Help: help}, labels)
}

// buildInfo returns a gauge with constant labels.
func buildInfo(o *Options) prometheus.Gauge {
	version := o.Version
	if info, ok := debug.ReadBuildInfo(); ok && version == "" {
		version = info.Main.Version
	}
	engines := map[string]string{"XnnpackBackend": "none", "EthosUBackend": "none"}
	for _, b := range o.Backends {
		if s := b.Probe(); s.Loaded {
			engines[b.ID()] = s.Engine
		}
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "etrun_build_info", Help: "Versions and engines of this process.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version(),
			"xnnpack": engines["XnnpackBackend"], "ethosu": engines["EthosUBackend"]}})
	g.Set(1)
	return g
}

// parts returns the collectors to register.
func (c *Collector) parts() []prometheus.Collector {
	return []prometheus.Collector{c.build, c.info, c.inference, c.inferences, c.inFlight, c.errors, c.delegates, c.wait, c.rejected, c.load,
		c.memory}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, p := range c.parts() {
		p.Describe(to)
	}
	to <- c.length
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	for _, p := range c.parts() {
		p.Collect(to)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.models {
		if waiting := m.waiting.Load(); waiting != nil {
			to <- prometheus.MustNewConstMetric(c.length, prometheus.GaugeValue, float64((*waiting)()), m.name)
		}
	}
}

// Model returns the observer of a model, the same one for the same name: a program that replaces
// another continues its series. sha256 is the digest of the program for etrun_model_info; an empty one keeps the last one.
func (c *Collector) Model(name, sha256 string) *Model {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.models[name]
	if m == nil {
		m = newModel(c, name)
		c.models[name] = m
	}
	m.setDigest(sha256)
	return m
}

// Remove removes a model and its series. Its programs must be closed.
func (c *Collector) Remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.models, name)
	for _, p := range c.parts() {
		if v, ok := p.(interface{ DeletePartialMatch(prometheus.Labels) int }); ok {
			v.DeletePartialMatch(prometheus.Labels{"model": name})
		}
	}
}
