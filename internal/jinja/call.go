package jinja

import (
	"errors"
	"fmt"
)

// maxArguments bounds the arguments of a call.
const maxArguments = 64

// arguments are the expressions of a call, in the order in which they are written.
type arguments []argument

// argument is an expression of a call: with a name, or what * or ** spreads.
type argument struct {
	name   string
	spread string
	value  expr
}

// rank orders the kinds of arguments: those with a name and those that are spread follow others.
func (a *argument) rank() int {
	switch {
	case a.spread == "**":
		return 3
	case a.spread == "*":
		return 2
	case a.name != "":
		return 1
	}
	return 0
}

// arguments reads arguments up to the closing bracket.
func (p *parser) arguments() (list *arguments, err error) {
	list = &arguments{}
	most := 0 // the rank of those before
	for !p.skip(op, ")") {
		var a argument
		switch t := p.tokens[min(p.at+1, len(p.tokens)-1)]; {
		case p.is(op, "*") || p.is(op, "**"):
			a.spread = p.next().text
		case p.peek().kind == name && t.kind == op && t.text == "=":
			a.name = p.next().text
			p.next()
		}
		rank := a.rank()
		if rank == 0 && most > 0 || rank == 1 && most == 3 || rank >= 2 && most >= rank {
			return nil, p.fail("an argument after one with a name, or after * or **")
		}
		most = max(most, rank)
		if a.value, err = p.expression(); err != nil {
			return nil, err
		}
		if *list = append(*list, a); len(*list) > maxArguments {
			return nil, p.fail("more than %d arguments", maxArguments)
		}
		if !p.skip(op, ",") && !p.is(op, ")") {
			return nil, p.unexpected(", or )")
		}
	}
	return list, nil
}

// values computes the arguments.
func (list *arguments) values(r *run) (*call, error) {
	c := &call{}
	if list == nil {
		return c, nil
	}
	for i := range *list {
		a := &(*list)[i]
		v, err := a.value(r)
		switch {
		case err != nil:
		case a.spread == "*":
			var items []any
			items, err = r.items(v)
			c.args = append(c.args, items...)
		case a.spread == "**":
			err = c.spread(r, v)
		case a.name != "":
			err = c.name(a.name, v)
		default:
			c.args = append(c.args, v)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// name adds an argument with a name.
func (c *call) name(key string, v any) error {
	if _, ok := c.named[key]; ok {
		return fmt.Errorf("the argument %.60q twice", key)
	}
	if c.named == nil {
		c.named = make(map[string]any)
	}
	c.named[key], c.order = v, append(c.order, key)
	return nil
}

// spread adds the members of a dictionary as arguments.
func (c *call) spread(r *run, v any) error {
	d, ok := v.(*Dict)
	if !ok {
		return fmt.Errorf("%s after **, want a dictionary", describe(v))
	}
	for _, k := range d.keys {
		s, _ := k.(string)
		if s == "" { // which would be the name of arguments that have none
			return fmt.Errorf("the key %.60q after **, want names", fmt.Sprint(k))
		}
		if err := errors.Join(c.name(s, d.values[k]), r.keyed(k)); err != nil {
			return err
		}
	}
	return r.step(len(d.keys))
}

// invocation is a call of a function.
type invocation struct {
	callee expr
	args   *arguments
}

// run calls the function. caller is the block of a tag call, nil for none.
func (i *invocation) run(r *run, caller function) (any, error) {
	v, err := i.callee(r)
	if err != nil {
		return nil, err
	}
	f, ok := v.(function)
	if !ok {
		return nil, fmt.Errorf("%s cannot be called", describe(v))
	}
	c, err := i.args.values(r)
	if err == nil && caller != nil {
		err = c.name("caller", caller)
	}
	if err != nil {
		return nil, err
	}
	if err := r.step(1); err != nil {
		return nil, err
	}
	return f(r, c)
}

// calling reads the arguments of a call.
func (p *parser) calling(x expr) (expr, error) {
	a, err := p.arguments()
	if err != nil {
		return nil, err
	}
	i := &invocation{x, a}
	p.called, p.calledTo = i, p.at
	return func(r *run) (any, error) { return i.run(r, nil) }, nil
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
	if t.kind != name {
		return nil, p.fail("the filter %.40q is not supported", t.text)
	}
	if !ok {
		lacks := p.lacks("filter", t)
		f = func(*run, any, *call) (any, error) { return nil, lacks }
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
	if t.kind != name && t.kind != op {
		return nil, p.fail("the test %.40q is not supported", t.text)
	}
	if !ok {
		lacks := p.lacks("test", t)
		f = func(*run, any, any) (bool, error) { return false, lacks }
	}
	a, err := p.optional()
	if k := p.peek(); err == nil && a == nil && takesOne[t.text] && (k.kind == name || k.kind == str || k.kind == number || k.text == "[") {
		var one argument
		if one.value, err = p.primary(); err == nil {
			one.value, err = p.postfix(one.value)
		}
		a = &arguments{one}
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
