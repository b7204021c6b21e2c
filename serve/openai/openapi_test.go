package openai

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/serve"
)

// description is the part of the description of the API that is checked.
type description struct {
	Paths      map[string]map[string]any
	Components struct {
		Schemas map[string]*schema
	}
}

type schema struct {
	Required   []string
	Properties map[string]*schema
}

// TestOpenAPI compares the description of the API with the routes, with the members that have an effect, and with those of answers.
func TestOpenAPI(t *testing.T) {
	d := &description{}
	if err := json.Unmarshal(serve.OpenAPI, d); err != nil {
		t.Fatal(err)
	}
	table := (&handler{}).table()
	for path, item := range d.Paths {
		if r, ok := table[path]; Serves(path) && (!ok || item[strings.ToLower(r.method)] == nil) {
			t.Errorf("%s is described, but not answered with %s", path, r.method)
		}
	}
	for path := range table {
		if d.Paths[path] == nil {
			t.Errorf("%s is not described", path)
		}
	}
	for name, members := range map[string]object{"Completion": completionMembers, "Chat": chatMembers, "Message": messageMembers,
		"Tokenize": tokenizeMembers, "Detokenize": detokenizeMembers, "Embedding": embeddingMembers, "ResponseRequest": responseMembers} {
		d.compare(t, name, slices.Collect(honouredIn(members)))
		for member, m := range members {
			if m.use == honoured && m.inside != nil && name != "Message" && member != "messages" && member != "tools" && member != "input" { // lists
				compareNames(t, name+"."+member, slices.Collect(maps.Keys(d.Components.Schemas[name].Properties[member].Properties)),
					slices.Collect(honouredIn(m.inside)))
			}
		}
	}
	for name, value := range map[string]any{"Usage": usage{}, "LanguageModel": modelAnswer{}, "Tokens": tokensAnswer{}, "EmbeddingUsage": embeddingUsage{}} {
		text, _ := json.Marshal(value)
		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		d.compare(t, name, slices.Collect(maps.Keys(got)))
	}
}

// honouredIn yields the members that have an effect.
func honouredIn(o object) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name, m := range o {
			if m.use == honoured && !yield(name) {
				return
			}
		}
	}
}

// compare compares the properties of a schema with names.
func (d *description) compare(t *testing.T, name string, want []string) {
	t.Helper()
	s := d.Components.Schemas[name]
	if s == nil {
		t.Fatalf("no schema %s", name)
	}
	compareNames(t, name, slices.Collect(maps.Keys(s.Properties)), want)
	for _, r := range s.Required {
		if s.Properties[r] == nil {
			t.Errorf("%s requires %s, which is not described", name, r)
		}
	}
}

func compareNames(t *testing.T, place string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: described are %q, want %q", place, got, want)
	}
}
