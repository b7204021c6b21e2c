// Package openaitest is for tests of what serves OpenAI's API: a model, and the description of the API.
package openaitest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// Folder returns a folder of the repository, in which tests run in the folders of their packages.
func Folder(path ...string) string {
	root := "."
	for range 8 { // levels, at most
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Join(root, "..")
	}
	return filepath.Join(append([]string{root}, path...)...)
}

// Model returns a small language model whose tokens are bytes, until the test ends.
func Model(t *testing.T) *text.Model {
	t.Helper()
	p, err := etrun.OpenSource(t.Context(), etrun.File(Folder("text", "testdata", "dynamic.pte")), etrun.WithDelegates(all.Backends()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	tok, err := tokenizer.Open(Folder("text", "testdata", "bytes.json"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := text.Load(t.Context(), p, tok)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// Template returns a template with a place for tools, which writes a call of f in a way.
func Template(call string) string {
	return `{% if tools %}Tools: {{ tools | tojson }}{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content }}` +
		`{% for c in m.tool_calls or [] %}{% set f = c.function %}` + call + `{% endfor %}{% endfor %}` +
		`{% if add_generation_prompt %}<assistant>{% endif %}`
}

// Schema is a schema of the description of the API.
type Schema struct {
	Required   []string
	Properties map[string]*Schema
}

// Description returns the operations by path and method, and the schemas.
func Description(t *testing.T) (paths map[string]map[string]any, schemas map[string]*Schema) {
	t.Helper()
	var d struct {
		Paths      map[string]map[string]any
		Components struct{ Schemas map[string]*Schema }
	}
	if err := json.Unmarshal(serve.OpenAPI, &d); err != nil {
		t.Fatal(err)
	}
	return d.Paths, d.Components.Schemas
}

// CheckNames compares the properties of a schema with names.
func (s *Schema) CheckNames(t *testing.T, place string, want []string) {
	t.Helper()
	if s == nil {
		t.Fatalf("no schema %s", place)
	}
	got := slices.Sorted(maps.Keys(s.Properties))
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("%s: described are %q, want %q", place, got, want)
	}
	for _, r := range s.Required {
		if s.Properties[r] == nil {
			t.Errorf("%s requires %s, which is not described", place, r)
		}
	}
}

// CheckObject compares the properties of a schema with the members of a value as JSON.
func (s *Schema) CheckObject(t *testing.T, name string, value any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	s.CheckNames(t, name, slices.Collect(maps.Keys(got)))
}
