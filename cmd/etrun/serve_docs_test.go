package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cmd/etrun/internal/daemon"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/needs"
)

// TestServeDocument runs the commands of docs/serve.md in one shell. None may fail.
func TestServeDocument(t *testing.T) {
	needs.Tool(t, "curl", "curl")
	blocks := fences(readText(t, "docs", "serve.md"), "sh")
	if len(blocks) < 5 {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	checkout, err := filepath.Abs(root)
	must(t, err)
	here, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "run"), []byte("set -eu\n"+strings.Join(blocks, "\n")))
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"testdata": filepath.Join(checkout, "testdata"), "text": filepath.Join(checkout, "text"), "bin/etrun": here} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), "timeout", "60", "sh", "run")
	c.Dir, c.Env = dir, append(os.Environ(), asCommand+"=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, part := range []string{`"model_name":"sums"`, `"model_name":"digits"`, `"state":"READY"`, `etrun_inferences_total{method="forward",model="sums",result="ok"}`,
		`"object":"text_completion"`, "data: [DONE]", `etrun_tokens_total{kind="generated",model="lm"} 16`} {
		if !strings.Contains(string(out), part) {
			t.Errorf("%s is not in what they print:\n%s", part, out)
		}
	}
}

// TestServeDocumentConfig loads the configuration of docs/serve.md.
func TestServeDocumentConfig(t *testing.T) {
	blocks := fences(readText(t, "docs", "serve.md"), "json")
	if len(blocks) != 1 || !json.Valid([]byte(blocks[0])) {
		t.Fatalf("%d blocks of JSON", len(blocks))
	}
	path := filepath.Join(t.TempDir(), "serve.json")
	write(t, path, []byte(blocks[0]))
	s := &serveCommand{Settings: daemon.Defaults(), Limits: daemon.DefaultLimits()}
	c := newServe(&app{})
	models, err := daemon.Models(t.Context(), c.Flags(), path, nil, &session.Options{}, &s.Limits)
	if err != nil || len(models) != 2 || models[0].Name != "digits" || models[1].Sequences != 4 {
		t.Errorf("%v, %+v", err, models)
	}
}

// TestServeDocumentFlags checks that docs/serve.md names existing flags.
func TestServeDocumentFlags(t *testing.T) {
	text := readText(t, "docs", "serve.md")
	for _, flag := range []string{"instances", "queue", "timeout", "max-batch", "batch-delay", "sequences", "sequence-idle", "sequence-memory", "trust", "drain", "debug", "tokenizer",
		"template", "texts", "text-memory", "models", "models-interval", "models-memory", "load", "idle", "strict-readiness"} {
		if newServe(&app{}).Flags().Lookup(flag) == nil || !strings.Contains(text, "--"+flag) {
			t.Errorf("--%s is no flag, or not in the document", flag)
		}
	}
}
