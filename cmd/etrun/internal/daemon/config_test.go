package daemon

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// readLine returns the models of a command line and a configuration.
func readLine(t *testing.T, config, line string) (*Settings, []*Model, error) {
	t.Helper()
	s, options, limits := Defaults(), session.Options{}, DefaultLimits()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.AddFlags(flags)
	limits.AddFlags(flags)
	options.AddFlags(flags)
	if err := flags.Parse(strings.Fields(line)); err != nil {
		t.Fatal(err)
	}
	path := ""
	if config != "" {
		path = file(t, "serve.json", config)
	}
	models, err := Models(t.Context(), flags, path, flags.Args(), &options, &limits)
	return &s, models, err
}

// TestConfig checks that flags of the command line override those of the file, and flags of a model
// both.
func TestConfig(t *testing.T) {
	s, models, err := readLine(t, `{
		"listen": ["unix:/a", "127.0.0.1:1"], "drain": "3s", "max-body": "1MiB", "access-log": false, "queue": 7, "threads": 2,
		"models": [{"path": "/m/words.pte", "instances": 5, "threads": 3, "method": ["a", "b"], "data": ["x.ptd", "y.ptd"]},
			{"name": "n", "path": "z.pte", "queue": 0}]}`,
		"--drain 4s --timeout 9s digits=d.bpte sub/other.pte")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Listen) != 2 || s.Drain != 4*time.Second || s.Body != 1<<20 || s.AccessLog {
		t.Errorf("settings %+v", s)
	}
	if len(models) != 4 {
		t.Fatalf("%d models", len(models))
	}
	for i, want := range []struct {
		name, path       string
		instances, queue int
		threads, methods int
	}{{"digits", "d.bpte", 2, 7, 2, 0}, {"other", "sub/other.pte", 2, 7, 2, 0}, {"words", "/m/words.pte", 5, 7, 3, 2}, {"n", "z.pte", 2, 0,
		2, 0}} {
		m := models[i]
		if m.Name != want.name || m.Path != want.path || m.instances() != want.instances || m.Queue != want.queue || m.Threads != want.threads ||
			len(m.Methods) != want.methods || m.Timeout != 9*time.Second {
			t.Errorf("model %d: %+v, want %+v", i, m, want)
		}
	}
}

// TestMaxBody checks that the maximum size of a request follows that of all requests unless both are given.
func TestMaxBody(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int64{"m.pte": 64 << 20, "m.pte --max-busy 1MiB": 1 << 20, "m.pte --max-busy 1GiB": 64 << 20,
		"m.pte --max-busy 1GiB --max-body 1GiB": 1 << 30, "m.pte --max-busy 1MiB --max-body 2MiB": 0} {
		s, _, err := readLine(t, "", line)
		if err != nil {
			t.Fatal(err)
		}
		if err = s.check(); (err == nil) != (want > 0) || err == nil && int64(s.maxBody()) != want {
			t.Errorf("%s: %d bytes, %v, want %d", line, int64(s.maxBody()), err, want)
		}
	}
	if s, _, err := readLine(t, `{"max-body":"2MiB","models":[{"path":"m.pte"}]}`, "--max-busy 1MiB"); err != nil || s.check() == nil {
		t.Errorf("a file with --max-body: %v, not refused", err)
	}
	r := start(t, func(d *Daemon) { d.Busy = 1 << 20 }, model("m", adder))
	if len(r.log.lines("requests are bounded by max-busy")) != 1 {
		t.Error("no line says that requests are bounded by --max-busy")
	}
}

func TestConfigRefuses(t *testing.T) {
	t.Parallel()
	for config, text := range map[string]string{
		`{`:                    "ends too early",
		` `:                    "ends too early",
		`[]`:                   "not an object",
		`{"models":[],}`:       ":1: ",
		`{"models":{}}`:        "not an array",
		`{} {}`:                "extra bytes",
		`{"models":["m.pte"]}`: "not an object",
		`{"models":[{"path":"m.pte","speed":1}]}`:                                "speed",
		`{"models":[{"path":"m.pte","instances":0}]}`:                            "\"--instances\" flag: want more than 0",
		`{"models":[{"path":"m.pte","instances":1000000000}]}`:                   "--instances 1000000000, want at most 1024",
		`{"models":[{"path":"m.pte","trust":""}]}`:                               "serve.json:1: trust is empty, want KEY",
		`{"models":[{"path":""}]}`:                                               "path is empty, want FILE",
		`{"models":[{"path":"m.pte","method":["forward",""]}]}`:                  "method is empty, want NAME",
		`{"models":[{"path":"m.pte","data":[""]}]}`:                              "data is empty, want FILE",
		`{"token-file":""}`:                                                      "token-file is empty, want FILE",
		`{"listen":""}`:                                                          "listen is empty, want ADDRESS",
		`{"models":[{"name":"m"}]}`:                                              "want a file",
		`{"models":[{"path":"m.pte","queue":{}}]}`:                               "queue",
		`{"models":[{"path":"m.pte","xnnpack":"fast"}]}`:                         "fast",
		`{"models":[{"path":"m.pte","listen":"127.0.0.1:1"}]}`:                   "listen",
		`{"colour":"red"}`:                                                       "colour",
		`{"config":"x.json"}`:                                                    "config",
		`{"drain":"soon"}`:                                                       "soon",
		`{}`:                                                                     "no model",
		"{\n\n\"colour\":\"red\"}":                                               "serve.json:3: colour: no flag --colour",
		"{\"models\":[\n{\"path\":\"m.pte\",\n\"speed\":1}]}":                    "serve.json:3: speed: no flag --speed",
		"{\"models\":[\n{\"path\":\"m.pte\",\"threads\":[],\n\"queue\":\"x\"}]}": "serve.json:3: queue: ",
		"{\"models\":[\n{\"path\":5}]}":                                          "serve.json:2: path: [\"5\"], want a string",
		"{\"drain\":\"3s\",\n\"drain\":\"4s\"}":                                  "duplicate",
		"{\"models\":[],\n\"models\":[]}":                                        "duplicate",
		`{"modles":[]}`:                                                          "modles: no flag --modles; did you mean models?",
		`{"tokn-file":"t"}`:                                                      "did you mean token-file?",
		`{"confg":"x.json"}`:                                                     "no flag --confg",
		`{"models":[{"path":"m.pte","instanses":1}]}`:                            "did you mean instances?",
		`{"models":[{"pth":"m.pte"}]}`:                                           "did you mean path?",
		`{"models":[{"path":"m.pte","thread":1}]}`:                               "did you mean threads?",
		`{"timeout":"0s","models":[{"path":"m.pte"}]}`:                           "flag: want more than 0",
		`{"models":[{"path":"m.pte","timeout":"0"}]}`:                            "flag: want more than 0",
		`{"models":[{"path":"m.pte","timeout":"-1s"}]}`:                          "flag: want more than 0",
		`{"max-body":0,"models":[{"path":"m.pte"}]}`:                             "flag: want more than 0",
		`{"access-log":1}`:                                                       "want a value of the type bool",
		`{"access-log":"true"}`:                                                  "want a value of the type bool",
		`{"queue":true}`:                                                         "want a value of the type int",
		`{"listen":null}`:                                                        "want a string",
		`{"listen":[["a"]]}`:                                                     "want a string",
	} {
		if _, _, err := readLine(t, config, ""); !errors.Is(err, session.ErrUsage) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, want one with %q", config, err, text)
		}
	}
}
