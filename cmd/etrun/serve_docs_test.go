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

// serveDocuments are the pages of etrun serve, with parts of what their commands print.
var serveDocuments = map[string][]string{
	"serve.md":           {`"model_name":"sums"`, `"object":"text_completion"`, "data: [DONE]", `etrun_tokens_total{kind="generated",model="lm"} 16`},
	"serve-reference.md": {`"model_name":"digits"`, `"model_name":"sums"`, "response.incomplete", `"embedding":`},
	"serve-operation.md": {`"state":"READY"`, `etrun_inferences_total{method="forward",model="digits",result="ok"}`},
}

// TestServeDocument runs the commands of each page in one shell. None may fail.
func TestServeDocument(t *testing.T) {
	needs.Tool(t, "curl", "curl")
	for page, parts := range serveDocuments {
		t.Run(page, func(t *testing.T) {
			out := runPage(t, page)
			for _, part := range parts {
				if !strings.Contains(out, part) {
					t.Errorf("%s is not in what they print:\n%s", part, out)
				}
			}
		})
	}
}

// runPage runs the commands of a page of docs, and returns what they print.
func runPage(t *testing.T, page string) string {
	t.Helper()
	blocks := fences(readText(t, "docs", page), "sh")
	if len(blocks) < 2 {
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
		"testdata": filepath.Join(checkout, "testdata"), "text": filepath.Join(checkout, "text"), "speech": filepath.Join(checkout, "speech"), "bin/etrun": here} {
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
	return string(out)
}

// TestServeDocumentConfig loads the configuration of the page of operation.
func TestServeDocumentConfig(t *testing.T) {
	blocks := fences(readText(t, "docs", "serve-operation.md"), "json")
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

// TestServeDocumentFlags checks that the pages name existing flags.
func TestServeDocumentFlags(t *testing.T) {
	text := ""
	for page := range serveDocuments {
		text += readText(t, "docs", page)
	}
	for _, flag := range []string{"instances", "queue", "timeout", "max-batch", "batch-delay", "sequences", "sequence-idle", "sequence-memory", "trust", "drain", "debug", "tokenizer",
		"template", "texts", "text-memory", "models", "models-interval", "models-memory", "load", "idle", "strict-readiness"} {
		if newServe(&app{}).Flags().Lookup(flag) == nil || !strings.Contains(text, "--"+flag) {
			t.Errorf("--%s is no flag, or not in the document", flag)
		}
	}
}
