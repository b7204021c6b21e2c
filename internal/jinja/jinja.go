// Package jinja (no compatibility promise) renders chat templates in the part of Jinja that the templates of language models
// use, with the settings of Hugging Face's library: trim_blocks, lstrip_blocks, break and continue, tojson without escapes for
// HTML, and values that cannot be changed. There are no includes, files or modules.
//
// Templates and values are untrusted: steps, bytes, nesting and calls are bounded.
package jinja

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Template is a parsed template. It is immutable and safe for concurrent use.
type Template struct {
	body     []node
	literals []string
}

// Parse parses a template. Statements, filters and tests that are not supported are errors; filters and tests within
// conditions are errors only when they are reached, as in Jinja2.
func Parse(source string) (*Template, error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("%d bytes, at most %d are allowed", len(source), maxSource)
	}
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	body, _, err := p.body()
	if err != nil {
		return nil, err
	}
	if len(p.lacking) > 0 {
		return nil, p.lacking[0]
	}
	return &Template{body, p.literals}, nil
}

// Literals returns the strings in the template's expressions, which its conditions compare with.
func (t *Template) Literals() []string { return t.literals }

// Render renders the template. The values of vars are those of this package: see [Value].
func (t *Template) Render(vars map[string]any, now time.Time) (string, error) {
	r := &run{limits: &limits{now: now}, out: &strings.Builder{}, scope: newScope(&scope{vars: vars})}
	r.scope.parent.parent = &scope{vars: globals}
	err := r.exec(t.body)
	if errors.Is(err, errBreak) || errors.Is(err, errContinue) {
		err = errors.New("break or continue outside a loop")
	}
	if err != nil {
		return "", err
	}
	return r.out.String(), nil
}
