package jinja

import (
	"fmt"
	"slices"
	"strings"
)

// body reads statements up to a tag of one of the names, which it skips with its name.
func (p *parser) body(ends ...string) (list []node, ended string, err error) {
	defer func() { p.depth-- }()
	if err := p.deeper(); err != nil {
		return nil, "", err
	}
	for {
		t := p.next()
		var n node
		switch t.kind {
		case eof:
			if len(ends) > 0 {
				return nil, "", p.fail("the end of the template, want %s", strings.Join(ends, " or "))
			}
			return list, "", nil
		case data:
			text := t.text
			n = func(r *run) error { return r.write(text) }
		case printBegin:
			n, err = p.print()
		default: // tagBegin
			if t := p.peek(); t.kind == name && slices.Contains(ends, t.text) {
				p.next()
				return list, t.text, nil
			}
			n, err = p.statement()
		}
		if err != nil {
			return nil, "", err
		}
		list = append(list, n)
	}
}

// print reads an expression that is written.
func (p *parser) print() (node, error) {
	x, err := p.tuple()
	if err != nil {
		return nil, err
	}
	return written(x), p.expect(printEnd, "", "the end }}")
}

// written writes the value of an expression.
func written(x expr) node {
	return func(r *run) error {
		v, err := x(r)
		if err != nil {
			return err
		}
		s, err := r.str(v)
		if err != nil {
			return err
		}
		return r.write(s)
	}
}

// statements are the tags. It is set below: the functions refer to it.
var statements map[string]func(p *parser) (node, error)

func init() {
	statements = map[string]func(p *parser) (node, error){
		"if": (*parser).ifTag, "for": (*parser).forTag, "set": (*parser).setTag, "macro": (*parser).macroTag,
		"filter": (*parser).filterTag, "generation": (*parser).generationTag, "with": (*parser).withTag, "call": (*parser).callTag,
		"break":    func(p *parser) (node, error) { return func(*run) error { return errBreak }, p.end() },
		"continue": func(p *parser) (node, error) { return func(*run) error { return errContinue }, p.end() },
	}
}

// statement reads a tag, and what belongs to it. Errors name the line.
func (p *parser) statement() (node, error) {
	t := p.peek()
	f := statements[t.text]
	if t.kind != name || f == nil {
		return nil, p.fail("the tag %.40q is not supported", t.text)
	}
	p.next()
	n, err := f(p)
	if err != nil {
		return nil, err
	}
	return located(n, t.line), nil
}

// locatedError is an error in a line.
type locatedError struct {
	line int
	err  error
}

func (e *locatedError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e *locatedError) Unwrap() error { return e.err }

// located adds the line to errors that have none.
func located(n node, line int) node {
	return func(r *run) error {
		err := n(r)
		switch err.(type) {
		case nil, *locatedError, *RaisedError:
			return err
		}
		if err == errBreak || err == errContinue {
			return err
		}
		return &locatedError{line, err}
	}
}

// branch is a condition with its statements; without a condition they always run.
type branch struct {
	condition expr
	body      []node
}

func (p *parser) ifTag() (node, error) {
	var list []branch
	defer p.forgive(len(p.lacking))
	for ended := "if"; ended != "endif"; {
		var b branch
		var err error
		if ended != "else" {
			if b.condition, err = p.tuple(); err != nil {
				return nil, err
			}
		}
		if err = p.end(); err != nil {
			return nil, err
		}
		ends := []string{"elif", "else", "endif"}
		if ended == "else" {
			ends = ends[2:]
		}
		if b.body, ended, err = p.body(ends...); err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return func(r *run) error { return r.choose(list) }, p.end()
}

// choose runs the first branch whose condition is true.
func (r *run) choose(list []branch) error {
	for i := range list {
		if list[i].condition != nil {
			v, err := list[i].condition(r)
			if err != nil {
				return err
			}
			if !truth(v) {
				continue
			}
		}
		return r.exec(list[i].body)
	}
	return nil
}

// targets reads names separated by commas.
func (p *parser) targets() (names []string, err error) {
	open := p.skip(op, "(")
	for {
		if p.peek().kind != name {
			return nil, p.unexpected("a name")
		}
		names = append(names, p.next().text)
		if !p.skip(op, ",") {
			break
		}
	}
	if open {
		err = p.expect(op, ")", ")")
	}
	return names, err
}

// assign sets one variable, or several to the elements of a value.
func (r *run) assign(s *scope, names []string, v any) error {
	if len(names) == 1 {
		s.vars[names[0]] = v
		return nil
	}
	items, err := r.items(v)
	if err != nil {
		return err
	}
	if len(items) != len(names) {
		return fmt.Errorf("%d values for %d names", len(items), len(names))
	}
	for i, n := range names {
		s.vars[n] = items[i]
	}
	return nil
}

func (p *parser) setTag() (node, error) {
	if t := p.tokens[min(p.at+1, len(p.tokens)-1)]; t.kind == op && t.text == "." {
		return p.setMember()
	}
	names, err := p.targets()
	if err != nil {
		return nil, err
	}
	x := p.tuple
	if !p.skip(op, "=") {
		x = func() (expr, error) { return p.filtered("endset") }
	}
	value, err := x()
	if err != nil {
		return nil, err
	}
	return func(r *run) error {
		v, err := value(r)
		if err != nil {
			return err
		}
		return r.assign(r.scope, names, v)
	}, p.end()
}

// filtered returns the output of statements up to a tag after filters, whose input is the variable without a name.
func (p *parser) filtered(end string) (expr, error) {
	filters, err := p.filters(func(r *run) (any, error) { return r.scope.vars[""], nil })
	if err != nil {
		return nil, err
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	body, _, err := p.body(end)
	return func(r *run) (any, error) {
		text, err := r.capture(body, newScope(r.scope))
		if err != nil {
			return nil, err
		}
		sub := &run{r.limits, r.out, newScope(r.scope)}
		sub.scope.vars[""] = text
		return filters(sub)
	}, err
}

// setMember sets a member of a namespace.
func (p *parser) setMember() (node, error) {
	object := p.next().text
	p.next()
	member := p.next()
	if member.kind != name {
		return nil, p.fail("a member without a name")
	}
	if err := p.expect(op, "=", "="); err != nil {
		return nil, err
	}
	x, err := p.tuple()
	if err != nil {
		return nil, err
	}
	return func(r *run) error {
		v, err := x(r)
		if err != nil {
			return err
		}
		n, ok := r.lookup(object).(*namespace)
		if !ok {
			return fmt.Errorf("%.60q is not a namespace", object)
		}
		n.members[member.text] = v
		return nil
	}, p.end()
}

func (p *parser) filterTag() (node, error) {
	p.at-- // the word filter is in the place of the operator
	p.tokens[p.at] = token{op, "|", nil, p.tokens[p.at].line}
	x, err := p.filtered("endfilter")
	if err != nil {
		return nil, err
	}
	return written(x), p.end()
}

// generationTag reads statements that Hugging Face's library marks for training.
func (p *parser) generationTag() (node, error) {
	if err := p.end(); err != nil {
		return nil, err
	}
	body, _, err := p.body("endgeneration")
	if err != nil {
		return nil, err
	}
	return func(r *run) error { return r.scoped(body) }, p.end()
}

// scoped runs statements whose variables end with them.
func (r *run) scoped(body []node) error {
	defer func(s *scope) { r.scope = s }(r.scope)
	r.scope = newScope(r.scope)
	return r.exec(body)
}

func (p *parser) withTag() (node, error) {
	var names []string
	var values []expr
	for p.peek().kind == name {
		names = append(names, p.next().text)
		if err := p.expect(op, "=", "="); err != nil {
			return nil, err
		}
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		if values = append(values, x); !p.skip(op, ",") {
			break
		}
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	body, _, err := p.body("endwith")
	if err != nil {
		return nil, err
	}
	return func(r *run) error {
		s := newScope(r.scope)
		for i, x := range values {
			v, err := x(r)
			if err != nil {
				return err
			}
			s.vars[names[i]] = v
		}
		defer func(s *scope) { r.scope = s }(r.scope)
		r.scope = s
		return r.exec(body)
	}, p.end()
}
