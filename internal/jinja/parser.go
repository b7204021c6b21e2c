package jinja

import "fmt"

// parser makes statements and expressions of tokens.
type parser struct {
	tokens   []token
	at       int
	depth    int
	literals []string
	lacking  []error // filters and tests that are not supported
	special  special // the names that the macro reads
	called   *invocation
	calledTo int // where the last call ended
}

// special are names that a macro has if it reads them: the caller of a call, and its further arguments.
type special struct{ caller, varargs, kwargs bool }

// mention notes a name that is read.
func (p *parser) mention(name string) {
	p.special.caller = p.special.caller || name == "caller"
	p.special.varargs = p.special.varargs || name == "varargs"
	p.special.kwargs = p.special.kwargs || name == "kwargs"
}

// lacks returns the error for a filter or a test that is not supported. It is one of the template, unless it is forgiven.
func (p *parser) lacks(what string, t *token) error {
	err := fmt.Errorf("line %d: the %s %.40q is not supported", t.line, what, t.text)
	p.lacking = append(p.lacking, err)
	return err
}

// forgive leaves what is not supported after some others to rendering: it is within a condition.
func (p *parser) forgive(known int) { p.lacking = p.lacking[:known] }

func (p *parser) peek() *token { return &p.tokens[p.at] }

// next returns the current token and moves on; the last one stays.
func (p *parser) next() *token {
	t := &p.tokens[p.at]
	if t.kind != eof {
		p.at++
	}
	return t
}

// is reports whether the current token is an operator or a name of that text.
func (p *parser) is(k kind, text string) bool {
	t := p.peek()
	return t.kind == k && t.text == text
}

// skip moves past an operator or a name, if it is the current token.
func (p *parser) skip(k kind, text string) bool {
	ok := p.is(k, text)
	if ok {
		p.at++
	}
	return ok
}

func (p *parser) fail(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", p.peek().line, fmt.Sprintf(format, args...))
}

// unexpected is the error for the current token.
func (p *parser) unexpected(want string) error {
	t := p.peek()
	got := t.text
	switch t.kind {
	case eof:
		got = "the end of the template"
	case tagEnd, printEnd:
		got = "the end of the tag"
	default:
		got = fmt.Sprintf("%.40q", got)
	}
	return p.fail("%s, want %s", got, want)
}

func (p *parser) expect(k kind, text, want string) error {
	if p.skip(k, text) {
		return nil
	}
	return p.unexpected(want)
}

// end reads the end of a tag.
func (p *parser) end() error { return p.expect(tagEnd, "", "the end of the tag") }

// deeper counts the nesting; the caller decreases it.
func (p *parser) deeper() error {
	if p.depth++; p.depth > maxNesting {
		return p.fail("more than %d levels of nesting", maxNesting)
	}
	return nil
}
