package daemon

import (
	"fmt"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"
)

// profiles returns the handler of /debug/pprof, for go tool pprof and go tool trace. The one of
// net/http/pprof also subtracts profiles, which makes the program 100 kB larger.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/{$}", func(w http.ResponseWriter, _ *http.Request) {
		for _, p := range pprof.Profiles() {
			fmt.Fprintf(w, "%s %d\n", p.Name(), p.Count())
		}
		fmt.Fprintln(w, "profile?seconds=30\ntrace?seconds=1")
	})
	mux.HandleFunc("GET /debug/pprof/{name}", func(w http.ResponseWriter, r *http.Request) {
		p := pprof.Lookup(r.PathValue("name"))
		if p == nil {
			http.Error(w, "no such profile; /debug/pprof/ lists them", http.StatusNotFound)
			return
		}
		level, _ := strconv.Atoi(r.FormValue("debug")) // 0 is the format of go tool pprof
		if level == 0 {
			w.Header().Set("Content-Type", "application/octet-stream")
		}
		_ = p.WriteTo(w, level) // the client may be gone
	})
	mux.HandleFunc("GET /debug/pprof/profile", func(w http.ResponseWriter, r *http.Request) {
		recordFor(w, r, 30, func() error { return pprof.StartCPUProfile(w) }, pprof.StopCPUProfile)
	})
	mux.HandleFunc("GET /debug/pprof/trace", func(w http.ResponseWriter, r *http.Request) {
		recordFor(w, r, 1, func() error { return trace.Start(w) }, trace.Stop)
	})
	return mux
}

// maxSeconds is the maximum length of a recording.
const maxSeconds = 600

// recordFor records for the number of seconds that the request has, or until the client leaves.
func recordFor(w http.ResponseWriter, r *http.Request, seconds int, start func() error, stop func()) {
	if s := r.FormValue("seconds"); s != "" {
		var err error
		if seconds, err = strconv.Atoi(s); err != nil || seconds < 1 || seconds > maxSeconds {
			http.Error(w, fmt.Sprintf("seconds=%.20q, want 1 to %d", s, maxSeconds), http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := start(); err != nil {
		http.Error(w, err.Error(), http.StatusConflict) // another recording
		return
	}
	defer stop()
	select {
	case <-r.Context().Done():
	case <-time.After(time.Duration(seconds) * time.Second):
	}
}
