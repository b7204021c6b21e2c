package jinja

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Limits on templates and on rendering.
const (
	maxSource  = 1 << 20
	maxOutput  = 16 << 20
	maxSteps   = 2_000_000
	maxBytes   = 64 << 20 // of all strings that are made
	maxNesting = 100      // of expressions, statements and values
	maxWritten = 1000     // of values that no template sees
	maxCalls   = 40       // of macros in macros
	maxRange   = 100_000
	maxShort   = 1 << 10 // bytes of keys that are not counted
)

// limits counts what rendering has used.
type limits struct {
	steps, bytes, calls int
	now                 time.Time
}

// scope holds variables.
type scope struct {
	vars   map[string]any
	parent *scope
}

func newScope(parent *scope) *scope { return &scope{make(map[string]any), parent} }

// run is the state of rendering.
type run struct {
	*limits
	out   *strings.Builder
	scope *scope
}

// node is a statement.
type node func(r *run) error

// expr is an expression.
type expr func(r *run) (any, error)

var (
	errBreak    = errors.New("break")
	errContinue = errors.New("continue")
)

// exec runs statements.
func (r *run) exec(body []node) error {
	for _, n := range body {
		if err := r.step(1); err != nil {
			return err
		}
		if err := n(r); err != nil {
			return err
		}
	}
	return nil
}

// step counts steps.
func (r *run) step(n int) error {
	if r.steps += n; r.steps > maxSteps || n > maxSteps {
		return fmt.Errorf("more than %d steps", maxSteps)
	}
	return nil
}

// made counts the bytes of a string before or after it is made.
func (r *run) made(n int) error {
	if r.bytes += n; r.bytes > maxBytes || n > maxBytes {
		return fmt.Errorf("strings of more than %d bytes", maxBytes)
	}
	return nil
}

// keyed counts the bytes of a key, which are read to find it.
func (r *run) keyed(key any) error {
	if s, ok := key.(string); ok && len(s) > maxShort {
		return r.made(len(s))
	}
	return nil
}

// write appends to the output.
func (r *run) write(s string) error {
	if r.out.Len()+len(s) > maxOutput {
		return fmt.Errorf("more than %d bytes of output", maxOutput)
	}
	if err := r.made(len(s)); err != nil {
		return err
	}
	r.out.WriteString(s)
	return nil
}

// lookup returns a variable.
func (r *run) lookup(name string) any {
	for s := r.scope; s != nil; s = s.parent {
		if v, ok := s.vars[name]; ok {
			return v
		}
	}
	return undefined{name}
}

// capture returns the output of statements in a scope of their own.
func (r *run) capture(body []node, s *scope) (string, error) {
	sub := &run{limits: r.limits, out: &strings.Builder{}, scope: s}
	err := sub.exec(body)
	return sub.out.String(), err
}

// RaisedError is an error that a template raises about its input.
type RaisedError struct{ Message string }

func (e *RaisedError) Error() string { return e.Message }
