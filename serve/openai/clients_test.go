package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/internal/needs"
	"github.com/etrun-go/etrun/serve/openai/internal/openaitest"
)

// snippet is how the code of a section of docs/clients.md is run, and what its client sends.
type snippet struct {
	language string
	file     string // that has the code
	needs    string // a module of node or Python, or a program: without it the code is not run
	run      string
	requests []sentRequest
}

// sentRequest is a request as a client sends it.
type sentRequest struct{ method, path, body string }

const hello = `{"role":"user","content":"Say hello"}`

// snippets are those of the sections.
var snippets = map[string]snippet{
	"curl": {"sh", "run.sh", "", "sh run.sh", []sentRequest{{"POST", asChat, `{"model":"lm","messages":[` + hello + `]}`}}},
	"OpenAI for Python": {"python", "run.py", "python", "python3 run.py",
		[]sentRequest{{"POST", asChat, `{"messages":[` + hello + `],"model":"lm"}`}}},
	"OpenAI for JavaScript": {"js", "run.mjs", "openai", "node run.mjs",
		[]sentRequest{{"POST", asChat, `{"model":"lm","messages":[` + hello + `],"stream":true}`}}},
	"LangChain": {"js", "run.mjs", "@langchain/openai", "node run.mjs", []sentRequest{
		{"POST", asChat, `{"model":"lm","stream":false,` + weatherTool + `,"messages":[{"role":"user","content":"Hi"}]}`},
		{"POST", asChat, `{"model":"lm","stream":false,` + weatherTool + `,"messages":[{"role":"user","content":"Hi"},` + weatherCall + `]}`}}},
	"Vercel AI SDK": {"js", "run.mjs", "@ai-sdk/openai-compatible", "node run.mjs", []sentRequest{
		{"POST", asChat, `{"model":"lm","messages":[{"role":"user","content":"Hi"}],` + weatherTool + `,"tool_choice":"auto"}`},
		{"POST", asChat, `{"model":"lm","messages":[{"role":"user","content":"Hi"},` + weatherCall + `],` + weatherTool + `,"tool_choice":"auto"}`}}},
	"opencode": {"json", "opencode.json", "opencode", `opencode run 'Say hello'`, []sentRequest{
		{"POST", asChat, `{` + agents["opencode"].members + `,"messages":[` + agents["opencode"].before + `],"tools":[` + agents["opencode"].tools + `]}`}}},
	"Codex": {"toml", "config.toml", "codex", `codex exec --skip-git-repo-check 'Say hello'`, []sentRequest{
		{"POST", asResponse, `{` + agents["codex"].members + `,"input":[` + agents["codex"].before + `],"tools":[` + agents["codex"].tools + `]}`}}},
	"Open WebUI": {"", "run.env", "open-webui", "", []sentRequest{{"GET", "/v1/models", ""},
		{"POST", asChat, `{"stream":true,"model":"lm","messages":[` + hello + `],"stream_options":{"include_usage":true}}`},
		{"POST", asChat, `{"model":"lm","messages":[` + hello + `],"stream":false,"max_completion_tokens":1000}`}}},
}

const (
	weatherTool = `"tools":[{"type":"function","function":{"name":"get_weather","description":"The weather of a city","parameters":{"type":"object",` +
		`"properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"}}}]`
	weatherCall = `{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}}]},` +
		`{"role":"tool","content":"Paris is sunny","tool_call_id":"c"}`
)

// section returns the code of a section of docs/clients.md.
func section(t *testing.T, page, title, language string) string {
	t.Helper()
	_, text, found := strings.Cut(page, "\n## "+title+"\n")
	_, text, begun := strings.Cut(text, "\n```"+language+"\n")
	code, _, ends := strings.Cut(text, "\n```\n")
	if !found || !begun || !ends || strings.Contains(code, "\n## ") {
		t.Fatalf("docs/clients.md has no code of %s in a section %s", language, title)
	}
	return code + "\n"
}

// Each snippet of docs/clients.md gets its answer from a server, if its client is installed. What the client sends is answered in any case.
func TestClientSnippets(t *testing.T) {
	data, err := os.ReadFile(openaitest.Folder("docs", "clients.md"))
	must(t, err)
	const final = "Hello! The answer is 42."
	p := newScriptedPeer(t, func(prompt string) string {
		if strings.Contains(prompt, "get_weather") && !strings.Contains(prompt, "<tool>") {
			return "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>"
		}
		return final
	})
	for title, s := range snippets {
		t.Run(title, func(t *testing.T) {
			const base = "http://127.0.0.1:8080"
			code := section(t, string(data), title, s.language)
			if !strings.Contains(code, base+"/v1") || !strings.Contains(code+title, "lm") && title != "Open WebUI" {
				t.Errorf("without the address %s/v1 or the model: %s", base, code)
			}
			for _, r := range s.requests {
				if status, answer := ask(t, p, r.method, r.path, r.body); status != http.StatusOK {
					t.Errorf("%s %s %.300s: %d %s", r.method, r.path, r.body, status, answer)
				}
			}
			if s.language == "json" && !json.Valid([]byte(code)) {
				t.Errorf("invalid JSON: %s", code)
			}
			out, installed := s.execute(t, strings.ReplaceAll(code, base, p.http.URL))
			if installed && !strings.Contains(out, final) {
				t.Errorf("%s\nprints %q, want %q", code, out, final)
			}
		})
	}
	if n := strings.Count(string(data), "\n## "); n != len(snippets)+1 { // and one of links
		t.Errorf("docs/clients.md has %d sections, %d of clients are tested", n, len(snippets))
	}
}

// execute runs the code in a folder of its own, if what it needs is installed.
func (s *snippet) execute(t *testing.T, code string) (out string, installed bool) {
	t.Helper()
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, s.file), []byte(code), 0o600))
	modules, err := filepath.Abs(filepath.Join("..", "..", ".deps", "npm", "node_modules"))
	must(t, err)
	switch s.needs {
	case "":
		needs.Tool(t, "curl", "curl")
	case "python":
		if exec.Command("python3", "-c", "import openai").Run() != nil {
			return "", false
		}
	default:
		name := s.needs
		if s.language != "js" {
			name = filepath.Join(".bin", name)
		}
		if _, err := os.Stat(filepath.Join(modules, name)); err != nil {
			return "", false
		}
		must(t, os.Symlink(modules, filepath.Join(folder, "node_modules")))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // some look for updates first
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-c", s.run)
	c.Env = append(os.Environ(), "HOME="+folder, "CODEX_HOME="+folder, fmt.Sprintf("PATH=%s:%s", filepath.Join(modules, ".bin"), os.Getenv("PATH")))
	c.Dir = folder
	result, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, result)
	}
	return string(result), true
}
