package daemon

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/serve/grpc"
)

// listening is a server and its listeners.
type listening struct {
	*http.Server
	listeners []net.Listener
	what      string // what it serves, for the log, empty for the main one
	aside     bool   // its requests are not waited for
}

// servers opens all listeners, or none, and returns their servers.
func (d *Daemon) servers(ctx context.Context) (list []listening, err error) {
	defer func() {
		if err != nil {
			closeListeners(list)
		}
	}()
	limit, news, _ := d.connectionLimits()
	conns := newConnections(limit, news)
	for _, open := range []func() (listening, error){
		func() (listening, error) { return d.listenHTTP(ctx, conns) },
		func() (listening, error) { return d.listenGRPC(ctx, conns) },
		func() (listening, error) { return d.listenMetrics(ctx) },
		func() (listening, error) { return d.listenDebug(ctx) },
	} {
		l, err := open()
		list = append(list, l)
		if err != nil {
			return list, err
		}
	}
	return list, nil
}

func closeListeners(list []listening) {
	for _, server := range list {
		for _, l := range server.listeners {
			_ = l.Close()
		}
	}
}

func (d *Daemon) listenHTTP(ctx context.Context, conns *connections) (l listening, err error) {
	l.Server = d.httpServer(ctx, conns)
	l.listeners, err = d.listen(ctx, listenFlag, d.Listen, d.secrets.tls("http/1.1"), d.secrets.known())
	return l, err
}

// grpcStreams bounds the concurrent calls of a connection. Clients open further connections, or wait.
const grpcStreams = 128

// listenGRPC opens the listeners of gRPC, if there are any.
func (d *Daemon) listenGRPC(ctx context.Context, conns *connections) (l listening, err error) {
	h := grpc.New(d.server, grpc.Options{Stop: ctx, Ready: func() error {
		if err := d.phase(ctx); err != nil || d.server.Ready() {
			return err
		}
		return errors.New("not all models are loaded")
	}})
	l.what, l.Server = "gRPC", d.guarded(conns, h)
	l.Protocols = new(http.Protocols)
	l.Protocols.SetHTTP2(true)
	l.Protocols.SetUnencryptedHTTP2(true)
	l.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: grpcStreams, WriteByteTimeout: d.BodyTimeout}
	l.listeners, err = d.listen(ctx, grpcFlag, d.GRPC, d.secrets.tls("h2"), d.secrets.known())
	return l, err
}

// metricsConnections bounds the connections of the listener of metrics.
const metricsConnections = 16

// listenMetrics opens the listener of metrics, if there is one. Clients of this machine need no authentication; others are
// checked like those of --listen.
func (d *Daemon) listenMetrics(ctx context.Context) (l listening, err error) {
	if d.Metrics == "" {
		return l, nil
	}
	l.what, l.aside = "metrics", true
	if l.listeners, err = d.listenOn(ctx, metricsFlag, d.Metrics); err != nil {
		return l, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsPath, d.counts.handler())
	if onMachine(l.listeners[0].Addr()) {
		l.Server = d.separateServer(metricsConnections, mux)
		l.WriteTimeout = d.BodyTimeout
		return l, nil
	}
	l.Server = d.guarded(newConnections(metricsConnections, metricsConnections), mux)
	return l, d.protect(metricsFlag, l.listeners, d.secrets.tls("http/1.1"), d.secrets.known())
}

// listenDebug opens the local listener of profiles, if there is one.
func (d *Daemon) listenDebug(ctx context.Context) (l listening, err error) {
	if d.Debug == "" {
		return l, nil
	}
	l.listeners, err = d.listenOn(ctx, debugFlag, d.Debug)
	if err != nil {
		return l, err
	}
	if a := l.listeners[0].Addr(); !local(a) {
		return l, session.Usage("--debug %v is reachable from other machines", a)
	}
	l.Server, l.what, l.aside = d.separateServer(debugConnections, profiles()), "profiles", true
	return l, nil
}

// separateServer returns a server with connections of its own, of which no client authenticates.
func (d *Daemon) separateServer(limit int, next http.Handler) *http.Server {
	conns := newConnections(limit, limit)
	names := &hosts{names: d.hosts.names, given: d.hosts.given}
	h := d.bounded(conns, names.guard(next, conns))
	h.BaseContext = names.context
	return h
}

// start serves the listeners.
func (d *Daemon) start(list []listening) {
	n := 0
	for _, server := range list {
		n += len(server.listeners)
	}
	d.ended = make(chan error, n)
	for _, server := range list {
		for _, l := range server.listeners {
			attributes := []any{"address", l.Addr().String(), "network", l.Addr().Network()}
			if server.what == "" && l.Addr().Network() == "tcp" {
				attributes = append(attributes, "url", d.url(l.Addr()))
			}
			d.log.Info(cmp.Or(server.what, "listening"), attributes...)
			d.workers.Go(func() { d.ended <- server.Serve(l) })
		}
	}
}

// url returns what to open in a browser. An address of all networks is that of the first name of the server.
func (d *Daemon) url(a net.Addr) string {
	u := url.URL{Scheme: "http", Host: a.String(), Path: "/"}
	if d.Cert != "" {
		u.Scheme = "https"
	}
	if t, ok := a.(*net.TCPAddr); ok && t.IP.IsUnspecified() {
		name := append(d.Host[:len(d.Host):len(d.Host)], "localhost")[0]
		u.Host = net.JoinHostPort(name, strconv.Itoa(t.Port))
	}
	return u.String()
}

// shutDown closes the servers after their requests, or when ctx ends.
func shutDown(ctx context.Context, list []listening) error {
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, server := range list {
		if server.Server == nil {
			continue
		}
		all.Go(func() {
			if server.aside {
				_ = server.Close()
			} else if errs[i] = server.Shutdown(ctx); errs[i] != nil {
				_ = server.Close()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
