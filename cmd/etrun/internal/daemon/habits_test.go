package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// TestFirstLine: the first line of the log is the address, with what to open in a browser.
func TestFirstLine(t *testing.T) {
	r := start(t, func(d *Daemon) { d.Busy = 1 << 20 }, model("m", adder)) // which has a line of its own
	first, _, _ := strings.Cut(r.log.text.String(), "\n")
	var line map[string]any
	if err := json.Unmarshal([]byte(first), &line); err != nil || line["msg"] != "listening" || line["url"] != r.url+"/" {
		t.Errorf("%s: %v, want the URL %s/", first, err, r.url)
	}
	for _, c := range []struct {
		address string
		port    int
		host    []string
		cert    string
		want    string
	}{
		{"127.0.0.1", 80, []string{"app.example"}, "", "http://127.0.0.1:80/"},
		{"0.0.0.0", 80, nil, "", "http://localhost:80/"},
		{"::", 443, []string{"app.example", "b.example"}, "cert.pem", "https://app.example:443/"},
		{"::1", 443, nil, "cert.pem", "https://[::1]:443/"},
	} {
		d := &Daemon{Settings: Settings{Host: c.host, Cert: c.cert}}
		if got := d.url(&net.TCPAddr{IP: net.ParseIP(c.address), Port: c.port}); got != c.want {
			t.Errorf("%s: got %s, want %s", c.address, got, c.want)
		}
	}
}

// TestLogUnits: durations in both formats of the log have units.
func TestLogUnits(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var b bytes.Buffer
		newLog(&b, format).Info("x", "took", 1500*time.Microsecond)
		if !strings.Contains(b.String(), "1.5ms") {
			t.Errorf("%s: %s", format, b.String())
		}
	}
}

// TestErrorsOnce: an error of a model is in the log once, whoever loads it.
func TestErrorsOnce(t *testing.T) {
	const cause = "a text file"
	broken := file(t, "broken.pte", "broken")
	log := &record{}
	d := &Daemon{Settings: Defaults(), Models: []*Model{model("m", broken)}, Log: log}
	d.Listen = []string{"127.0.0.1:0"}
	if err := d.Run(t.Context()); !IsLogged(err) || strings.Count(log.text.String(), cause) != 1 {
		t.Errorf("at the start: %v\n%s", err, log.text.String())
	}
	r := start(t, func(d *Daemon) {
		m := model("m", broken)
		m.Load = onDemand
		d.Models, d.Control = append(d.Models, m), true
	})
	times := func() int { return strings.Count(r.log.text.String(), cause) }
	for _, c := range []struct {
		method, path string
		want         int // lines with the cause
	}{
		{"POST", "/v2/models/m/infer", 1}, {"GET", "/v2/models/m", 1}, {"POST", "/v2/repository/models/m/load", 2}, {"GET", "/v2/models/m", 2},
	} {
		code, text, _ := r.ask(c.method, c.path, "")
		if got := times(); code < 500 || got != c.want {
			t.Errorf("%s %s: %d %s: the log has the cause %d times, want %d", c.method, c.path, code, text, got, c.want)
		}
		if says := strings.Contains(text, cause); says != !strings.HasSuffix(c.path, "infer") {
			t.Errorf("%s %s: %s", c.method, c.path, text)
		}
	}
}

// TestUnavailable: a model of a folder that fails is listed with its reason, and goes with its file.
func TestUnavailable(t *testing.T) {
	folder := t.TempDir()
	place(t, folder+"/broken.pte", []byte("broken"))
	place(t, folder+"/options.pte", numbered(t, 1, 10))
	place(t, folder+"/options.json", []byte(`{"instances": 0}`))
	place(t, folder+"/no name.pte", []byte("broken"))
	r := startFolder(t, folder, nil)
	r.wait("the server is ready", func() bool { code, _, _ := r.ask("GET", "/v2/health/ready", ""); return code == 200 })
	rows := func() map[string]string {
		var list []struct{ Name, State, Reason string }
		if _, text, _ := r.ask("POST", "/v2/repository/index", ""); json.Unmarshal([]byte(text), &list) != nil {
			t.Fatal(text)
		}
		states := make(map[string]string)
		for _, row := range list {
			states[row.Name] = row.State + " " + row.Reason
		}
		return states
	}
	got := rows()
	for name, reason := range map[string]string{"broken": "a text file", "options": "want more than 0"} {
		if !strings.HasPrefix(got[name], "UNAVAILABLE ") || !strings.Contains(got[name], reason) {
			t.Errorf("index: model %s: %s, want UNAVAILABLE with %q", name, got[name], reason)
		}
		for _, path := range []string{"", "/ready"} {
			if code, text, _ := r.ask("GET", "/v2/models/"+name+path, ""); code != 503 || !strings.Contains(text, reason) {
				t.Errorf("GET %s%s: %d %s", name, path, code, text)
			}
		}
	}
	if len(got) != 2 {
		t.Errorf("%v, want two models", got)
	}
	place(t, folder+"/broken.pte", numbered(t, 1, 10))
	if err := os.Remove(folder + "/options.pte"); err != nil {
		t.Fatal(err)
	}
	r.reload(t.Context())
	if got = rows(); len(got) != 1 || got["broken"] != "READY " {
		t.Errorf("after repair: %v", got)
	}
}

// TestReloadOutcome: what a reload did is logged, also that it did nothing.
func TestReloadOutcome(t *testing.T) {
	tokens := file(t, "tokens", "first-token-0123456")
	r := start(t, func(d *Daemon) {
		d.TokenFile = tokens
		d.Reread = func(context.Context) (*Daemon, bool, error) { return d, false, nil }
	}, model("m", adder))
	last := func(message string) map[string]any {
		list := r.log.lines(message)
		return list[len(list)-1]
	}
	r.reload(t.Context())
	if s, m := last("secrets reloaded"), last("models reloaded"); s["changed"] != "nothing" || m["unchanged"] != 1.0 || m["changed"] != 0.0 || m["failed"] != 0.0 {
		t.Errorf("nothing changed: %v, %v", s, m)
	}
	r.Models[0].Queue++
	second := model("n", adder)
	broken := model("broken", file(t, "broken.pte", "broken"))
	r.Models = append(r.Models, second, broken)
	err := os.WriteFile(tokens, []byte("first-token-0123456\nsecond-token-012345"), 0o600)
	r.reload(t.Context())
	if s := last("secrets reloaded"); errors.Join(err) != nil || s["changed"] != "tokens" || s["tokens"] != 2.0 {
		t.Errorf("a second token: %v, %v", err, s)
	}
	if m := last("models reloaded"); m["added"] != 1.0 || m["changed"] != 1.0 || m["failed"] != 1.0 || m["unchanged"] != 0.0 {
		t.Errorf("one added, one changed, one broken: %v", m)
	}
	r.Models = r.Models[:1]
	r.reload(t.Context())
	if m := last("models reloaded"); m["removed"] != 2.0 || m["unchanged"] != 1.0 {
		t.Errorf("two removed: %v", m)
	}
}
