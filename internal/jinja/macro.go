package jinja

import (
	"fmt"
	"slices"
)

// macro is a function of the template.
type macro struct {
	name     string
	names    []string
	defaults []expr // nil for none
	body     []node
	special  special
}

func (p *parser) macroTag() (node, error) {
	if p.peek().kind != name {
		return nil, p.unexpected("a name")
	}
	m := &macro{name: p.next().text}
	if err := p.expect(op, "(", "("); err != nil {
		return nil, err
	}
	if err := p.signature(m); err != nil {
		return nil, err
	}
	if err := p.define(m, "endmacro"); err != nil {
		return nil, err
	}
	return func(r *run) error {
		r.scope.vars[m.name] = m.bound(r.scope)
		return nil
	}, p.end()
}

// bound returns a macro as a value of the scope in which it is defined.
func (m *macro) bound(around *scope) function {
	return func(r *run, c *call) (any, error) { return m.call(r, c, around) }
}

// signature reads the names of a macro's arguments up to the closing bracket.
func (p *parser) signature(m *macro) error {
	for !p.skip(op, ")") {
		if p.peek().kind != name {
			return p.unexpected("a name or )")
		}
		m.names = append(m.names, p.next().text)
		var value expr
		if p.skip(op, "=") {
			var err error
			if value, err = p.expression(); err != nil {
				return err
			}
		}
		m.defaults = append(m.defaults, value)
		if !p.skip(op, ",") && !p.is(op, ")") {
			return p.unexpected(", or )")
		}
	}
	return nil
}

// define reads the statements of a macro, up to the name of its end.
func (p *parser) define(m *macro, end string) (err error) {
	if err := p.end(); err != nil {
		return err
	}
	outer := p.special
	p.special = special{}
	m.body, _, err = p.body(end)
	inner := p.special
	m.special = special{inner.caller && !slices.Contains(m.names, "caller"), inner.varargs && !slices.Contains(m.names, "varargs"),
		inner.kwargs && !slices.Contains(m.names, "kwargs")}
	p.special = special{outer.caller || inner.caller, outer.varargs || inner.varargs, outer.kwargs || inner.kwargs}
	return err
}

// callTag reads a call of a macro whose caller is the block.
func (p *parser) callTag() (node, error) {
	block := &macro{name: "caller"}
	if p.skip(op, "(") {
		if err := p.signature(block); err != nil {
			return nil, err
		}
	}
	x, err := p.primary()
	if err == nil {
		_, err = p.postfix(x)
	}
	if err != nil {
		return nil, err
	}
	if p.called == nil || p.calledTo != p.at {
		return nil, p.unexpected("a call")
	}
	called := p.called
	if err := p.define(block, "endcall"); err != nil {
		return nil, err
	}
	return func(r *run) error {
		v, err := called.run(r, block.bound(r.scope))
		if err != nil {
			return err
		}
		s, err := r.str(v)
		if err != nil {
			return err
		}
		return r.write(s)
	}, p.end()
}

// call returns the output of a macro.
func (m *macro) call(r *run, c *call, around *scope) (any, error) {
	if len(c.args) > len(m.names) && !m.special.varargs {
		return nil, fmt.Errorf("macro %s: %d arguments, want at most %d", m.name, len(c.args), len(m.names))
	}
	if r.calls++; r.calls > maxCalls {
		return nil, fmt.Errorf("macro %s: more than %d calls in calls", m.name, maxCalls)
	}
	defer func() { r.calls-- }()
	if err := r.step(len(m.names) + len(c.args) + len(c.order)); err != nil {
		return nil, err
	}
	s := newScope(around)
	further, err := m.further(c)
	if err != nil {
		return nil, err
	}
	if m.special.caller {
		s.vars["caller"] = undefined{"the caller"}
		if v, ok := c.named["caller"]; ok {
			s.vars["caller"] = v
		}
	}
	if m.special.varargs {
		s.vars["varargs"] = &List{Items: c.args[min(len(m.names), len(c.args)):], Tuple: true}
	}
	if m.special.kwargs {
		s.vars["kwargs"] = further
	}
	for i, n := range m.names {
		v, ok := c.named[n]
		switch {
		case i < len(c.args):
			v = c.args[i]
		case !ok && m.defaults[i] == nil:
			v = undefined{n}
		case !ok:
			if v, err = m.defaults[i](&run{r.limits, r.out, s}); err != nil {
				return nil, err
			}
		}
		s.vars[n] = v
	}
	return r.capture(m.body, s)
}

// further returns the arguments with names that the macro does not have. They are errors if it does not read them.
func (m *macro) further(c *call) (*Dict, error) {
	d := NewDict()
	for _, key := range c.order {
		if i := slices.Index(m.names, key); i >= len(c.args) || key == "caller" && m.special.caller {
			continue
		}
		if !m.special.kwargs {
			return nil, fmt.Errorf("macro %s: no argument %.60q", m.name, key)
		}
		d.Set(key, c.named[key])
	}
	return d, nil
}
