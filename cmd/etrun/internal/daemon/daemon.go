package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/webpage"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/runtime/metrics"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai"
)

// Daemon configures a server of models.
type Daemon struct {
	Settings
	Models   []*Model
	Version  string
	Backends []delegate.Backend
	Log      io.Writer
	// Common and CommonLimits are the flags of the models in Settings.Folder.
	Common       *session.Options
	CommonLimits *Limits
	// Reread reads Models, Common and CommonLimits again when the server reloads, and whether other settings have
	// changed. If nil, they stay.
	Reread func(ctx context.Context) (again *Daemon, others bool, err error)

	log     *slog.Logger
	counts  *counts
	metrics *metrics.Collector
	secrets *secretStore
	hosts   *hosts
	server  *serve.Server
	ended   chan error // of listeners that fail
	workers sync.WaitGroup

	reloading sync.Mutex // held while models are applied
	applied   applied
	started   atomic.Bool // all models of the start are loaded
}

// Bounds of connections without flags.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = time.Minute
	headerBytes   = 16 << 10

	debugConnections = 16
)

// Run serves until ctx ends, then waits up to Drain for requests in progress. At SIGHUP it reloads
// secrets and models.
func (d *Daemon) Run(ctx context.Context) error {
	if err := d.prepare(ctx); err != nil {
		return err
	}
	list, err := d.servers(ctx)
	if err != nil {
		return err
	}
	hangups := make(chan os.Signal, 1)
	signal.Reset(syscall.SIGHUP) // the default ends other commands
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	d.start(list)
	d.explain()
	err = d.work(ctx, hangups)
	notify(d.log, stopping)
	switch ended := d.end(list); {
	case ended != nil || err != nil && !errors.Is(err, errLoads):
		err = errors.Join(err, ended)
		d.log.Error("ended", "error", err)
	case err != nil: // the log has it
		d.log.Error("ended", "reason", errLoads.Error())
	default:
		d.log.Info("ended")
		return nil
	}
	return &loggedError{err}
}

// errLoads is the class of errors of models at the start.
var errLoads = errors.New("not all models could be loaded")

// loggedError is an error that the log has.
type loggedError struct{ error }

// Unwrap returns the error.
func (e *loggedError) Unwrap() error { return e.error }

// IsLogged reports whether the log has an error of Run.
func IsLogged(err error) bool {
	_, ok := errors.AsType[*loggedError](err)
	return ok
}

// prepare sets up everything but the listeners.
func (d *Daemon) prepare(ctx context.Context) (err error) {
	if err := cmp.Or(d.check(), checkMapped(d.Folder, d.Common, d.CommonLimits)); err != nil {
		return err
	}
	d.log = newLog(d.Log, d.LogFormat)
	d.secrets = &secretStore{settings: &d.Settings}
	if err := d.secrets.read(ctx); err != nil {
		return err
	}
	if d.hosts, err = d.Settings.hosts(d.secrets.known()); err != nil {
		return err
	}
	if err := checkNames(d.Models); err != nil { // before the metrics of models
		return session.Usage("%w", err)
	}
	d.metrics = metrics.New(metrics.Options{Version: d.Version, Backends: d.Backends, Detail: d.MetricsDetail})
	d.counts = newCounts(d.metrics, d.MetricsDetail)
	d.server, err = serve.New(serve.Options{Version: d.Version, BodyBytes: int64(d.maxBody()), BusyBytes: int64(d.Busy),
		BodyTimeout: d.BodyTimeout, Control: d.Control, MemoryBytes: int64(d.Memory), Strict: d.Strict}, d.configs()...)
	if err != nil {
		return session.Usage("%w", err)
	}
	for _, m := range d.server.Models() {
		d.counts.watch(m, d.metrics)
	}
	d.begin()
	d.counts.registry.MustRegister(modelsOf{d.server})
	return nil
}

// newLog returns a log in a format. Durations have units in both.
func newLog(w io.Writer, format string) *slog.Logger {
	if format != "json" {
		return slog.New(slog.NewTextHandler(w, nil))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			a.Value = slog.StringValue(a.Value.Duration().String())
		}
		return a
	}}))
}

// explain logs settings that bound each other, after the addresses.
func (d *Daemon) explain() {
	if body := d.maxBody(); d.Body == 0 && body < defaultBody {
		d.log.Info("requests are bounded by max-busy", "max_body", int64(body))
	}
	if most, _, files := d.connectionLimits(); most < d.Connections {
		d.log.Warn("fewer connections than --max-connections: the limit of open files is low", "connections", most, "files", files)
	}
}

// configs returns the configurations of the models for package serve.
func (d *Daemon) configs() (configs []serve.Config) {
	for _, m := range d.Models {
		configs = append(configs, d.served(m).config())
	}
	return configs
}

// served returns a model for package serve.
func (d *Daemon) served(m *Model) *served {
	m.Options.Say = func(format string, args ...any) { d.log.Warn(fmt.Sprintf(format, args...), "model", m.Name) }
	s := &served{Model: m, metrics: d.metrics, counts: d.counts, log: d.log, body: int64(d.maxBody()), limited: d.Memory > 0,
		detail: d.MetricsDetail}
	if s.limited {
		s.left = func() int64 { return d.server.MemoryLeft() }
	}
	return s
}

// httpServer returns the HTTP server. After ctx ends it is not ready.
func (d *Daemon) httpServer(ctx context.Context, conns *connections) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("/", d.server)
	texts := openai.New(d.server, openai.Options{Observe: d.counts.texts.observe, Embedded: d.counts.texts.embedded})
	for _, pattern := range openai.Patterns {
		mux.Handle(pattern, texts)
	}
	mux.Handle("GET "+metricsPath, d.counts.handler())
	if !d.NoPage {
		mux.HandleFunc("GET /{$}", webpage.Answer)
		mux.HandleFunc("GET "+webpage.Prefix, webpage.Answer)
	}
	for _, path := range []string{readyPath, healthPath} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if err := d.phase(ctx); err != nil {
				refusal(http.StatusServiceUnavailable, err.Error()).ServeHTTP(w, r)
				return
			}
			asked := *r
			asked.URL = &url.URL{Path: readyPath}
			d.server.ServeHTTP(w, &asked)
		})
	}
	return d.guarded(conns, mux)
}

// guarded returns a server whose clients are checked.
func (d *Daemon) guarded(conns *connections, next http.Handler) *http.Server {
	checked := conns.shed(d.hosts.guard(d.secrets.guard(next, conns), conns))
	h := d.bounded(conns, &access{next: checked, log: d.log, counts: d.counts, verbose: d.AccessLog, probes: d.ProbeLog})
	h.WriteTimeout = d.BodyTimeout // package serve extends it for inferences
	h.BaseContext = d.hosts.context
	return h
}

// phase returns why the server is not ready, apart from its models, nil for no reason. ctx is that of Run.
func (d *Daemon) phase(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return errStopping
	case d.Folder != "" && !d.started.Load():
		return errStarting
	}
	return nil
}

var (
	errStopping = errors.New("the server is shutting down")
	errStarting = errors.New("the server is starting")
)

// otherFiles are open files that are not connections: models, libraries, processes, the log.
const otherFiles = 128

// connectionLimits returns the bounds of connections within that of files. A connection for which no file can be opened would
// keep the server from accepting others.
func (d *Daemon) connectionLimits() (limit, news, files int) {
	limit, news, files = d.Connections, maxNew, openFiles()
	if files > 0 && limit+reserve+news+otherFiles > files {
		free := max(files-otherFiles, 16)
		news = min(maxNew, free/4)
		limit = min(limit, max(free/2-news, 1))
	}
	return limit, news, files
}

// bounded returns an HTTP server whose clients cannot hold connections, whichever handler answers.
func (d *Daemon) bounded(conns *connections, next http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:                      conns.track(serve.LimitBodies(next, d.BodyTimeout)),
		ReadHeaderTimeout:            headerTimeout,
		ReadTimeout:                  headerTimeout + d.BodyTimeout, // until LimitBodies replaces it
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               headerBytes,
		ConnState:                    conns.state,
		ConnContext:                  conns.context,
		DisableGeneralOptionsHandler: true, // it reads bodies
		ErrorLog:                     slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
		Protocols:                    protocols,
	}
}

// work loads the models, reports readiness, and serves until ctx ends or a listener fails.
func (d *Daemon) work(ctx context.Context, hangups <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	var loads sync.WaitGroup
	defer loads.Wait()
	defer cancel()
	loaded := make(chan error, 1)
	loads.Go(func() { loaded <- d.loadAll(ctx) })
	select {
	case err := <-loaded:
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	case err := <-d.ended:
		return err
	case <-ctx.Done():
		return nil
	}
	notify(d.log, ready)
	loads.Go(func() { d.feedWatchdog(ctx) })
	loads.Go(func() { d.watchFolder(ctx) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-d.ended:
			return err
		case <-hangups:
			loads.Go(func() { d.reload(ctx) })
		}
	}
}

// loadAll loads the models of the start. Those of the folder may fail.
func (d *Daemon) loadAll(ctx context.Context) error {
	if err := d.server.LoadAll(ctx); err != nil {
		return fmt.Errorf("%w: %w", errLoads, err)
	}
	d.reloading.Lock()
	defer d.reloading.Unlock()
	if d.Folder != "" {
		if err := d.apply(ctx, false); err != nil {
			return err
		}
	}
	d.started.Store(true)
	return nil
}

// reload reloads secrets, the configuration of models, and models that have changed. What fails to load stays in use.
func (d *Daemon) reload(ctx context.Context) {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	notify(d.log, reloading())
	d.rereadSecrets(ctx)
	d.reread(ctx)
	d.applied.outcome = outcome{}
	if err := d.apply(ctx, false); err == nil {
		o := &d.applied.outcome
		d.log.Info("models reloaded", "added", o.added, "changed", o.changed, "removed", o.removed, "failed", o.failed,
			"unchanged", len(d.applied.models)-o.added-o.changed-o.failed)
	} else if ctx.Err() == nil {
		d.log.Error("models not reloaded", "error", err)
	}
	notify(d.log, ready)
}

// rereadSecrets reads tokens and certificates again, if there are any. If that fails they stay as they are.
func (d *Daemon) rereadSecrets(ctx context.Context) {
	if d.Cert == "" && d.TokenFile == "" { // a file of authorities needs a certificate
		return
	}
	old := d.secrets.now.Load()
	if err := d.secrets.read(ctx); err != nil {
		d.log.Error("secrets not reloaded", "error", err)
		return
	}
	now := d.secrets.now.Load()
	d.log.Info("secrets reloaded", "changed", now.differences(old), "tokens", len(now.tokens))
}

// reread reads the configuration of models again. If that fails it stays as it is.
func (d *Daemon) reread(ctx context.Context) {
	if d.Reread == nil {
		return
	}
	again, others, err := d.Reread(ctx)
	if err == nil {
		err = cmp.Or(checkNames(again.Models), checkMapped(d.Folder, again.Common, again.CommonLimits))
	}
	if err != nil {
		d.log.Error("configuration not reloaded", "error", err)
		return
	}
	d.Models, d.Common, d.CommonLimits = again.Models, again.Common, again.CommonLimits
	if others {
		d.log.Warn("settings of the server have changed, which apply after a restart: only those of models are reloaded")
	}
}

// closeTime is the time for closing programs after the requests have ended or timed out.
const closeTime = 2 * time.Second

var errDrain = errors.New("requests did not end in time")

// end waits for requests, and closes everything.
func (d *Daemon) end(list []listening) error {
	ctx, cancel := context.WithTimeout(context.Background(), d.Drain)
	defer cancel()
	err := shutDown(ctx, list)
	if err != nil {
		err = fmt.Errorf("%w: %v: %w", errDrain, d.Drain, err)
	}
	d.workers.Wait()
	closed := make(chan struct{})
	go func() {
		_ = d.server.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(closeTime): // operators are not interrupted; they end with the process
	}
	return err
}
