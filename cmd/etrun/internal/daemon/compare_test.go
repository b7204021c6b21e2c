package daemon

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate/all"
)

// serveFor runs a daemon for a benchmark, and returns a function that sends one request.
func serveFor(b *testing.B, path, address string, binaryData, isolated bool) (stop func(), send func() error) {
	b.Helper()
	log := &record{}
	m := &Model{Name: "m", Path: path, Options: session.Options{Threads: 1}, Limits: DefaultLimits()}
	m.Instances, m.Isolate = 1, isolated
	d := &Daemon{Settings: Defaults(), Models: []*Model{m}, Backends: all.Backends(), Log: log}
	d.Listen, d.LogFormat, d.AccessLog = []string{address}, "json", false
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	for len(log.lines("model loaded")) == 0 {
		select {
		case err := <-ended:
			b.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	list := exchanges(b, path, 4, binaryData)
	at := log.lines("listening")[0]["address"].(string)
	client, url := &http.Client{}, "http://"+at
	if socket, unix := strings.CutPrefix(address, "unix:"); unix {
		url = "http://unix"
		client.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}
	}
	var next atomic.Int64
	return func() {
			client.CloseIdleConnections()
			cancel()
			if err := <-ended; err != nil {
				b.Error(err)
			}
		}, func() error {
			code, err := list[int(next.Add(1))%len(list)].send(ctx, client, url)
			if err == nil && code != http.StatusOK {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
}

// compare times alternating calls of functions, so that noise affects all of them, and reports the
// median of each, and of its ratio to the function named library.
func compare(b *testing.B, list map[string]func() error) {
	for _, f := range list {
		for range 5 {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
	}
	times := make(map[string][]float64)
	for b.Loop() {
		for name, f := range list {
			begun := time.Now()
			if err := f(); err != nil {
				b.Fatal(err)
			}
			times[name] = append(times[name], float64(time.Since(begun).Microseconds()))
		}
	}
	for name, took := range times {
		ratios := make([]float64, len(took))
		for i := range took {
			ratios[i] = took[i] / times["library"][i]
		}
		b.ReportMetric(median(took), name+"-us")
		b.ReportMetric(median(ratios), name+"-ratio")
	}
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
