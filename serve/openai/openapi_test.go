package openai

import (
	"strings"
	"testing"

	"github.com/etrun-go/etrun/serve/openai/internal/openaitest"
)

// TestOpenAPI compares the description of the API with the routes, and with objects of answers.
func TestOpenAPI(t *testing.T) {
	paths, schemas := openaitest.Description(t)
	table := (&handler{}).table()
	for path, item := range paths {
		if r, ok := table[path]; Serves(path) && (!ok || item[strings.ToLower(r.method)] == nil) {
			t.Errorf("%s is described, but not answered with %s", path, r.method)
		}
	}
	for path := range table {
		if paths[path] == nil {
			t.Errorf("%s is not described", path)
		}
	}
	for name, value := range map[string]any{"LanguageModel": modelAnswer{}, "Tokens": tokensAnswer{}} {
		schemas[name].CheckObject(t, name, value)
	}
}
