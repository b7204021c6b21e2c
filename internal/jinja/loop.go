package jinja

import "errors"

// forLoop is a loop over the elements of a value.
type forLoop struct {
	names     []string
	values    expr
	condition expr // nil for none
	body      []node
	without   []node // for no elements
}

func (p *parser) forTag() (node, error) {
	var l forLoop
	var err error
	if l.names, err = p.targets(); err != nil {
		return nil, err
	}
	if err := p.expect(name, "in", "in"); err != nil {
		return nil, err
	}
	if l.values, err = p.or(); err != nil {
		return nil, err
	}
	if p.skip(name, "if") {
		if l.condition, err = p.expression(); err != nil {
			return nil, err
		}
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	var ended string
	if l.body, ended, err = p.body("else", "endfor"); err != nil {
		return nil, err
	}
	if ended == "else" {
		if err := p.end(); err != nil {
			return nil, err
		}
		if l.without, _, err = p.body("endfor"); err != nil {
			return nil, err
		}
	}
	return l.run, p.end()
}

// run runs the loop.
func (l *forLoop) run(r *run) error {
	v, err := l.values(r)
	if err != nil {
		return err
	}
	items, err := r.items(v)
	if err != nil {
		return err
	}
	if items, err = l.selected(r, items); err != nil {
		return err
	}
	if len(items) == 0 {
		return r.scoped(l.without)
	}
	defer func(s *scope) { r.scope = s }(r.scope)
	outer := r.scope
	state := &loopState{items: items}
	for i, x := range items {
		state.index = i
		r.scope = newScope(outer)
		r.scope.vars["loop"] = state
		if err := r.step(1); err != nil {
			return err
		}
		if err := r.assign(r.scope, l.names, x); err != nil {
			return err
		}
		err := r.exec(l.body)
		if errors.Is(err, errBreak) {
			break
		}
		if err != nil && !errors.Is(err, errContinue) {
			return err
		}
	}
	return nil
}

// selected returns the elements that the loop's condition accepts.
func (l *forLoop) selected(r *run, items []any) (kept []any, err error) {
	if l.condition == nil {
		return items, nil
	}
	defer func(s *scope) { r.scope = s }(r.scope)
	r.scope = newScope(r.scope)
	for _, x := range items {
		if err := r.assign(r.scope, l.names, x); err != nil {
			return nil, err
		}
		ok, err := l.condition(r)
		if err != nil {
			return nil, err
		}
		if truth(ok) {
			kept = append(kept, x)
		}
	}
	return kept, nil
}

// loopState is the variable loop.
type loopState struct {
	items   []any
	index   int
	changed *List // the last arguments of changed
}

// loopMembers are the members of loop.
var loopMembers = map[string]func(l *loopState) any{
	"index":     func(l *loopState) any { return l.index + 1 },
	"index0":    func(l *loopState) any { return l.index },
	"revindex":  func(l *loopState) any { return len(l.items) - l.index },
	"revindex0": func(l *loopState) any { return len(l.items) - l.index - 1 },
	"first":     func(l *loopState) any { return l.index == 0 },
	"last":      func(l *loopState) any { return l.index == len(l.items)-1 },
	"depth":     func(*loopState) any { return 1 }, // loops are not recursive
	"depth0":    func(*loopState) any { return 0 },
	"length":    func(l *loopState) any { return len(l.items) },
	"previtem":  func(l *loopState) any { return l.item(l.index - 1) },
	"nextitem":  func(l *loopState) any { return l.item(l.index + 1) },
	"cycle": func(l *loopState) any {
		return function(func(_ *run, c *call) (any, error) {
			if len(c.args) == 0 {
				return nil, errors.New("cycle without values")
			}
			return c.args[l.index%len(c.args)], nil
		})
	},
	"changed": func(l *loopState) any {
		return function(func(r *run, c *call) (any, error) {
			now := &List{Items: c.args}
			if l.changed != nil {
				same, err := r.equal(l.changed, now, 0)
				if err != nil || same {
					return false, err
				}
			}
			l.changed = now
			return true, nil
		})
	},
}

func (l *loopState) item(i int) any {
	if i < 0 || i >= len(l.items) {
		return undefined{"loop item"}
	}
	return l.items[i]
}
