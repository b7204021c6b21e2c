package jinja

import (
	"errors"
	"fmt"
)

// maxArguments bounds the arguments of a call.
const maxArguments = 64

// arguments are the expressions of a call.
type arguments struct {
	args  []expr
	names []string // of the last ones
	named []expr
}

// arguments reads arguments up to the closing bracket.
func (p *parser) arguments() (*arguments, error) {
	a := &arguments{}
	for !p.skip(op, ")") {
		key := ""
		if t := p.tokens[min(p.at+1, len(p.tokens)-1)]; p.peek().kind == name && t.kind == op && t.text == "=" {
			key = p.next().text
			p.next()
		}
		x, err := p.expression()
		switch {
		case err != nil:
			return nil, err
		case key != "":
			a.names, a.named = append(a.names, key), append(a.named, x)
		case len(a.named) > 0:
			return nil, p.fail("an argument without a name after one with a name")
		default:
			a.args = append(a.args, x)
		}
		if len(a.args)+len(a.named) > maxArguments {
			return nil, p.fail("more than %d arguments", maxArguments)
		}
		if !p.skip(op, ",") && !p.is(op, ")") {
			return nil, p.unexpected(", or )")
		}
	}
	return a, nil
}

// values computes the arguments.
func (a *arguments) values(r *run) (*call, error) {
	c := &call{}
	if a == nil {
		return c, nil
	}
	for _, x := range a.args {
		v, err := x(r)
		if err != nil {
			return nil, err
		}
		c.args = append(c.args, v)
	}
	for i, x := range a.named {
		v, err := x(r)
		if err != nil {
			return nil, err
		}
		if c.named == nil {
			c.named = make(map[string]any)
		}
		c.named[a.names[i]] = v
	}
	return c, nil
}

// calling reads the arguments of a call.
func (p *parser) calling(x expr) (expr, error) {
	a, err := p.arguments()
	if err != nil {
		return nil, err
	}
	return func(r *run) (any, error) {
		v, err := x(r)
		if err != nil {
			return nil, err
		}
		f, ok := v.(function)
		if !ok {
			return nil, fmt.Errorf("%s cannot be called", describe(v))
		}
		c, err := a.values(r)
		if err != nil {
			return nil, err
		}
		if err := r.step(1); err != nil {
			return nil, err
		}
		return f(r, c)
	}, nil
}

// optional reads arguments in brackets, if there are any.
func (p *parser) optional() (*arguments, error) {
	if p.skip(op, "(") {
		return p.arguments()
	}
	return nil, nil
}

func (p *parser) filter(x expr) (expr, error) {
	t := p.next()
	f, ok := filters[t.text]
	if t.kind != name || !ok {
		return nil, p.fail("the filter %.40q is not supported", t.text)
	}
	a, err := p.optional()
	return func(r *run) (any, error) {
		v, err := x(r)
		if err != nil {
			return nil, err
		}
		c, err := a.values(r)
		if err != nil {
			return nil, err
		}
		v, err = f(r, v, c)
		if err != nil {
			return nil, named("filter "+t.text, err)
		}
		return v, r.step(1)
	}, err
}

// named adds a name to an error.
func named(what string, err error) error {
	if _, ok := errors.AsType[*RaisedError](err); ok {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// test reads a test, whose one argument may have no brackets.
func (p *parser) test(x expr) (expr, error) {
	not := p.skip(name, "not")
	t := p.next()
	f, ok := tests[t.text]
	if t.kind != name && t.kind != op || !ok {
		return nil, p.fail("the test %.40q is not supported", t.text)
	}
	a, err := p.optional()
	if k := p.peek(); err == nil && a == nil && takesOne[t.text] && (k.kind == name || k.kind == str || k.kind == number || k.text == "[") {
		a = &arguments{args: make([]expr, 1)}
		if a.args[0], err = p.primary(); err == nil {
			a.args[0], err = p.postfix(a.args[0])
		}
	}
	return func(r *run) (any, error) {
		v, err := x(r)
		if err != nil {
			return nil, err
		}
		c, err := a.values(r)
		if err != nil {
			return nil, err
		}
		ok, err := f(r, v, c.arg(0, "", nil))
		return ok != not, err
	}, err
}
