package jinja

import (
	"fmt"
	"strings"
)

// call has the arguments of a function or a filter.
type call struct {
	args  []any
	named map[string]any
	order []string // of the names
}

// arg returns an argument by its position or its name, or a default.
func (c *call) arg(i int, key string, otherwise any) any {
	if i < len(c.args) {
		return c.args[i]
	}
	if v, ok := c.named[key]; ok {
		return v
	}
	return otherwise
}

// function is a value that can be called.
type function func(r *run, c *call) (any, error)

// tuple reads expressions separated by commas: one, or a tuple.
func (p *parser) tuple() (expr, error) {
	x, err := p.expression()
	if err != nil || !p.is(op, ",") {
		return x, err
	}
	list := []expr{x}
	for p.skip(op, ",") {
		if k := p.peek(); k.kind == tagEnd || k.kind == printEnd || k.text == ")" {
			break
		}
		if x, err = p.expression(); err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return listOf(list, true), nil
}

func listOf(list []expr, tuple bool) expr {
	return func(r *run) (any, error) {
		l := &List{Tuple: tuple, Items: make([]any, len(list))}
		for i, x := range list {
			var err error
			if l.Items[i], err = x(r); err != nil {
				return nil, err
			}
		}
		return l, r.step(len(list) + 1)
	}
}

// expression reads an expression with its condition.
func (p *parser) expression() (expr, error) {
	defer func() { p.depth-- }()
	if err := p.deeper(); err != nil {
		return nil, err
	}
	known := len(p.lacking)
	x, err := p.or()
	for err == nil && p.skip(name, "if") {
		defer p.forgive(known)
		var condition, otherwise expr
		if condition, err = p.or(); err != nil {
			return nil, err
		}
		if p.skip(name, "else") {
			if otherwise, err = p.expression(); err != nil {
				return nil, err
			}
		}
		x = conditional(condition, x, otherwise)
	}
	return x, err
}

func conditional(condition, yes, no expr) expr {
	return func(r *run) (any, error) {
		v, err := condition(r)
		switch {
		case err != nil:
			return nil, err
		case truth(v):
			return yes(r)
		case no == nil:
			return undefined{"the value without else"}, nil
		}
		return no(r)
	}
}

func (p *parser) or() (expr, error)  { return p.logic("or", true, p.and) }
func (p *parser) and() (expr, error) { return p.logic("and", false, p.not) }

// logic reads operands of and or or. The value is that of the operand that decides.
func (p *parser) logic(word string, decides bool, operand func() (expr, error)) (expr, error) {
	x, err := operand()
	if err != nil || !p.is(name, word) {
		return x, err
	}
	list := []expr{x}
	for p.skip(name, word) {
		if x, err = operand(); err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return func(r *run) (v any, err error) {
		for _, x := range list {
			if v, err = x(r); err != nil || truth(v) == decides {
				break
			}
		}
		return v, err
	}, nil
}

func (p *parser) not() (expr, error) {
	if !p.skip(name, "not") {
		return p.comparison()
	}
	defer func() { p.depth-- }()
	if err := p.deeper(); err != nil {
		return nil, err
	}
	x, err := p.not()
	return negated(x), err
}

func negated(x expr) expr {
	return func(r *run) (any, error) {
		v, err := x(r)
		return !truth(v), err
	}
}

// operand is an operator with what follows it.
type operand struct {
	apply operation
	x     expr
}

// comparison reads a chain of comparisons.
func (p *parser) comparison() (expr, error) {
	x, err := p.chain(sums)
	if err != nil {
		return nil, err
	}
	var list []operand
	for {
		f := p.comparator()
		if f == nil {
			break
		}
		y, err := p.chain(sums)
		if err != nil {
			return nil, err
		}
		list = append(list, operand{f, y})
	}
	if list == nil {
		return x, nil
	}
	return func(r *run) (any, error) { return r.compareAll(x, list) }, nil
}

// comparator reads an operator of comparisons, nil if there is none.
func (p *parser) comparator() operation {
	t := p.peek()
	if f := comparisons[t.text]; f != nil && (t.kind == op || t.kind == name && t.text == "in") {
		p.at++
		return f
	}
	if p.is(name, "not") && p.tokens[min(p.at+1, len(p.tokens)-1)].text == "in" {
		p.at += 2
		return func(r *run, a, b any) (any, error) {
			v, err := r.in(a, b)
			return !v, err
		}
	}
	return nil
}

// compareAll is true if all comparisons of a chain are.
func (r *run) compareAll(x expr, list []operand) (any, error) {
	a, err := x(r)
	if err != nil {
		return nil, err
	}
	var ok any
	for _, o := range list {
		b, err := o.x(r)
		if err != nil {
			return nil, err
		}
		if ok, err = o.apply(r, a, b); err != nil || !truth(ok) {
			return false, err
		}
		a = b
	}
	return ok, nil
}

// level is a list of operators of the same rank, and what binds more strongly.
type level struct {
	operators map[string]operation
	inner     *level // nil for powers
}

var (
	products = &level{map[string]operation{"*": (*run).times, "/": (*run).over, "//": (*run).floor, "%": (*run).modulo}, nil}
	joins    = &level{map[string]operation{"~": (*run).join}, products}
	sums     = &level{map[string]operation{"+": (*run).plus, "-": (*run).minus}, joins}
)

// chain reads operands of the operators of a level, from the left.
func (p *parser) chain(l *level) (expr, error) {
	operandOf := p.power
	if l.inner != nil {
		operandOf = func() (expr, error) { return p.chain(l.inner) }
	}
	first, err := operandOf()
	if err != nil {
		return nil, err
	}
	var list []operand
	for p.peek().kind == op && l.operators[p.peek().text] != nil {
		f := l.operators[p.next().text]
		y, err := operandOf()
		if err != nil {
			return nil, err
		}
		list = append(list, operand{f, y})
	}
	if list == nil {
		return first, nil
	}
	return func(r *run) (any, error) {
		a, err := first(r)
		for i := 0; err == nil && i < len(list); i++ {
			var b any
			if b, err = list[i].x(r); err == nil {
				a, err = list[i].apply(r, a, b)
			}
		}
		return a, err
	}, nil
}

func (p *parser) power() (expr, error) {
	x, err := p.unary(true)
	if err == nil && p.is(op, "**") {
		return nil, p.fail("the operator ** is not supported")
	}
	return x, err
}

// unary reads a sign, or a value with its tests and filters.
func (p *parser) unary(filters bool) (expr, error) {
	defer func() { p.depth-- }()
	if err := p.deeper(); err != nil {
		return nil, err
	}
	var x expr
	var err error
	switch {
	case p.skip(op, "-"):
		if x, err = p.unary(false); err == nil {
			x = applied(x, func(r *run, v any) (any, error) { return r.minus(0, v) })
		}
	case p.skip(op, "+"):
		x, err = p.unary(false)
	default:
		if x, err = p.primary(); err == nil {
			x, err = p.postfix(x)
		}
	}
	if err != nil || !filters {
		return x, err
	}
	return p.filters(x)
}

func applied(x expr, f func(r *run, v any) (any, error)) expr {
	return func(r *run) (any, error) {
		v, err := x(r)
		if err != nil {
			return nil, err
		}
		return f(r, v)
	}
}

// constants are names with a value.
var constants = map[string]any{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

func constant(v any) expr { return func(r *run) (any, error) { return v, r.step(1) } }

// primary reads a literal, a name, or what is in brackets.
func (p *parser) primary() (expr, error) {
	t := p.peek()
	switch {
	case t.kind == name:
		p.next()
		if v, ok := constants[t.text]; ok {
			return constant(v), nil
		}
		p.mention(t.text)
		return func(r *run) (any, error) { return r.lookup(t.text), r.step(1) }, nil
	case t.kind == number:
		return constant(p.next().value), nil
	case t.kind == str:
		var text strings.Builder
		for p.peek().kind == str {
			text.WriteString(p.next().text)
		}
		p.literals = append(p.literals, text.String())
		return constant(text.String()), nil
	case p.skip(op, "("):
		if p.skip(op, ")") {
			return listOf(nil, true), nil
		}
		x, err := p.tuple()
		if err != nil {
			return nil, err
		}
		return x, p.expect(op, ")", ")")
	case p.skip(op, "["):
		list, err := p.list("]")
		return listOf(list, false), err
	case p.skip(op, "{"):
		return p.dict()
	}
	return nil, p.unexpected("a value")
}

// list reads expressions up to a bracket.
func (p *parser) list(end string) (list []expr, err error) {
	for !p.skip(op, end) {
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		if list = append(list, x); !p.skip(op, ",") && !p.is(op, end) {
			return nil, p.unexpected(", or " + end)
		}
	}
	return list, nil
}

func (p *parser) dict() (expr, error) {
	var keys, values []expr
	for !p.skip(op, "}") {
		k, err := p.expression()
		if err == nil {
			err = p.expect(op, ":", ":")
		}
		if err != nil {
			return nil, err
		}
		v, err := p.expression()
		if err != nil {
			return nil, err
		}
		if keys, values = append(keys, k), append(values, v); !p.skip(op, ",") && !p.is(op, "}") {
			return nil, p.unexpected(", or }")
		}
	}
	return func(r *run) (any, error) {
		d := NewDict()
		for i := range keys {
			k, err := keys[i](r)
			if err != nil {
				return nil, err
			}
			v, err := values[i](r)
			if err != nil {
				return nil, err
			}
			if !hashable(k) {
				return nil, fmt.Errorf("a key that is %s", describe(k))
			}
			if err := r.keyed(k); err != nil {
				return nil, err
			}
			d.Set(k, v)
		}
		return d, r.step(len(keys) + 1)
	}, nil
}

// postfix reads members, indices and calls.
func (p *parser) postfix(x expr) (expr, error) {
	for n := 0; ; n++ {
		var err error
		if n > maxNesting {
			return nil, p.fail("more than %d members of members", maxNesting)
		}
		switch {
		case p.skip(op, "."):
			t := p.next()
			if t.kind != name && t.kind != number {
				return nil, p.unexpected("a name after the point")
			}
			if n, ok := t.value.(int); ok {
				x = applied(x, func(r *run, v any) (any, error) { return r.index(v, n) })
			} else {
				x = applied(x, func(r *run, v any) (any, error) { return r.member(v, t.text) })
			}
		case p.skip(op, "["):
			x, err = p.subscript(x)
		case p.skip(op, "("):
			x, err = p.calling(x)
		default:
			return x, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// subscript reads an index or a slice.
func (p *parser) subscript(x expr) (expr, error) {
	var parts [3]expr
	n := 0
	for !p.skip(op, "]") {
		if p.skip(op, ":") {
			if n++; n > 2 {
				return nil, p.unexpected("]")
			}
			continue
		}
		if parts[n] != nil {
			return nil, p.unexpected("] or :")
		}
		var err error
		if parts[n], err = p.expression(); err != nil {
			return nil, err
		}
	}
	if n == 0 && parts[0] == nil {
		return nil, p.unexpected("an index")
	}
	if n == 0 {
		return func(r *run) (any, error) { return r.both(x, parts[0], (*run).index) }, nil
	}
	return applied(x, func(r *run, v any) (any, error) { return r.slice(v, parts) }), nil
}

// both applies an operation to the values of two expressions.
func (r *run) both(x, y expr, f operation) (any, error) {
	a, err := x(r)
	if err != nil {
		return nil, err
	}
	b, err := y(r)
	if err != nil {
		return nil, err
	}
	return f(r, a, b)
}

// filters reads the filters and tests that follow a value.
func (p *parser) filters(x expr) (expr, error) {
	for n := 0; ; n++ {
		var err error
		switch {
		case p.skip(op, "|"):
			x, err = p.filter(x)
		case p.skip(name, "is"):
			x, err = p.test(x)
		case p.skip(op, "."), p.skip(op, "["), p.skip(op, "("):
			p.at--
			x, err = p.postfix(x)
		default:
			return x, nil
		}
		if err == nil && n > maxNesting {
			err = p.fail("more than %d filters", maxNesting)
		}
		if err != nil {
			return nil, err
		}
	}
}
