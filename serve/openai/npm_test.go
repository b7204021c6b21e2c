package openai_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/internal/needs"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/text"
)

// npmError is an error as the npm client reports it.
type npmError struct {
	Name   string `json:"name"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Param  string `json:"param"`
	Type   string `json:"type"`
}

// runNPM asks servers at some URLs with an npm package, and reads what the program prints.
func runNPM(t *testing.T, name, program string, into any, urls ...string) {
	t.Helper()
	node := needs.Tool(t, "node", "nodejs")
	modules, err := filepath.Abs(filepath.Join("..", "..", ".deps", "npm", "node_modules"))
	must(t, err)
	if _, err := os.Stat(filepath.Join(modules, name)); err != nil {
		needs.Missing(t, "the npm package %s (make deps installs it)", name)
	}
	folder := t.TempDir() // the program finds packages beside itself
	must(t, os.Symlink(modules, filepath.Join(folder, "node_modules")))
	text, err := os.ReadFile("testdata/npm/" + program)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, program), text, 0o600))
	c := exec.CommandContext(t.Context(), node, append([]string{filepath.Join(folder, program)}, urls...)...)
	out, err := c.Output()
	if e, ok := err.(*exec.ExitError); ok {
		t.Fatalf("%v: %s", err, e.Stderr)
	}
	must(t, err)
	must(t, json.Unmarshal(out, into))
}

// npmServers returns the URLs of a server of texts, and of one of vectors.
func npmServers(t *testing.T) []string {
	return []string{newPeer(t, serve.Config{}).http.URL, newEmbedPeer(t, serve.Options{}).http.URL}
}

// TestOllamaClient asks the server with the npm client of Ollama's API, see testdata/npm/ollama.mjs.
func TestOllamaClient(t *testing.T) {
	var got struct {
		Chat, ChatStreamed, Text, TextStreamed, Version, Error string
		Models, Loaded, Shown                                  []string
		Vectors                                                [][]float32
		Vector                                                 []float32
	}
	runNPM(t, "ollama", "ollama.mjs", &got, npmServers(t)...)
	text8, chat := want(t, "hello", text.Options{MaxTokens: 8}), want(t, "hello|", text.Options{MaxTokens: 8})
	if got.Text != text8 || got.TextStreamed != text8 || got.Chat != chat || got.ChatStreamed != chat {
		t.Errorf("texts %q, %q, %q, %q; want %q, %q", got.Text, got.TextStreamed, got.Chat, got.ChatStreamed, text8, chat)
	}
	one := []string{"lm"}
	if !reflect.DeepEqual(got.Models, one) || !reflect.DeepEqual(got.Loaded, one) || len(got.Shown) == 0 || got.Version == "" {
		t.Errorf("models %q, loaded %q, %q, version %q", got.Models, got.Loaded, got.Shown, got.Version)
	}
	if !strings.HasPrefix(got.Error, "ResponseError 400 options.mirostat: ") {
		t.Errorf("error %q", got.Error)
	}
	library := libraryVectors(t, text.EmbedOptions{Pooling: text.PoolMean, Normalize: true}, "the model", "x")
	if len(got.Vectors) != 2 || !equalVectors(got.Vectors[1], library[1]) || !equalVectors(got.Vector, library[0]) {
		t.Errorf("vectors %v, %v", got.Vectors, got.Vector)
	}
}

// TestNPMClient asks the server with the npm client of OpenAI's API, see testdata/npm/client.mjs.
func TestNPMClient(t *testing.T) {
	var got struct {
		Models                       []string
		Model                        string
		Completion, Finish, Streamed string
		Usage, StreamUsage           int
		Chat, ChatStreamed           string
		ChatParts                    int
		Form                         map[string]string
		Choices, LogProbs            int
		Errors                       map[string]npmError
		After                        string

		Response, ResponseStatus, ResponseStreamed string
		ResponseParts, VectorTokens                int
		Vectors                                    [][]float32
	}
	runNPM(t, "openai", "client.mjs", &got, npmServers(t)...)
	expected := want(t, "hello", text.Options{MaxTokens: 8})
	chat := want(t, "hello|", text.Options{MaxTokens: 8})
	for name, texts := range map[string][2]string{
		"completion": {got.Completion, expected}, "stream": {got.Streamed, expected}, "after a stream that was ended": {got.After, expected},
		"chat": {got.Chat, chat}, "stream of a chat": {got.ChatStreamed, chat},
		"response": {got.Response, chat}, "stream of a response": {got.ResponseStreamed, chat},
	} {
		if texts[0] != texts[1] || texts[1] == "" {
			t.Errorf("%s: %q, want %q", name, texts[0], texts[1])
		}
	}
	if !reflect.DeepEqual(got.Models, []string{"lm"}) || got.Model != "model" {
		t.Errorf("models %q, %q", got.Models, got.Model)
	}
	if got.Finish != "length" || got.Usage != 8 || got.StreamUsage != 8 || got.ChatParts == 0 {
		t.Errorf("finish %q, usage %d, in the stream %d, %d parts", got.Finish, got.Usage, got.StreamUsage, got.ChatParts)
	}
	if a := got.Form["a"]; a != "x" && a != "y" || got.Choices != 2 || got.LogProbs != 8 {
		t.Errorf("form %v, %d choices, %d log-probabilities", got.Form, got.Choices, got.LogProbs)
	}
	if got.ResponseStatus != "incomplete" || got.ResponseParts == 0 {
		t.Errorf("response %q, %d parts", got.ResponseStatus, got.ResponseParts)
	}
	library := libraryVectors(t, text.EmbedOptions{Pooling: text.PoolMean}, "the model", "x")
	for i, v := range library {
		if v = v[:4]; len(got.Vectors) != 2 || got.VectorTokens != 7 {
			t.Fatalf("vectors %v of %d tokens", got.Vectors, got.VectorTokens)
		}
		if text.Normalize(v); !equalVectors(got.Vectors[i], v) {
			t.Errorf("vector %v, want %v", got.Vectors[i], v)
		}
	}
	for name, e := range map[string]npmError{
		"stored":     {"BadRequestError", 400, "unsupported_parameter", "previous_response_id", "invalid_request_error"},
		"dimensions": {"BadRequestError", 400, "", "dimensions", "invalid_request_error"},
		"model":      {"NotFoundError", 404, "model_not_found", "model", "invalid_request_error"},
		"member":     {"BadRequestError", 400, "unknown_parameter", "color", "invalid_request_error"},
		"value":      {"BadRequestError", 400, "", "top_p", "invalid_request_error"},
		"long":       {"BadRequestError", 400, "context_length_exceeded", "prompt", "invalid_request_error"},
	} {
		if got.Errors[name] != e {
			t.Errorf("%s: got %+v, want %+v", name, got.Errors[name], e)
		}
	}
}
