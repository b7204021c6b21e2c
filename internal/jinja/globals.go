package jinja

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// globals are the functions that templates call.
var globals = map[string]any{
	"raise_exception": function(raise), "range": function(numbers), "namespace": function(newNamespace), "dict": function(newDict),
	"strftime_now": function(formatNow), "joiner": function(newJoiner), "cycler": function(newCycler),
}

func raise(r *run, c *call) (any, error) {
	s, err := r.str(c.arg(0, "", "error"))
	if err != nil {
		return nil, err
	}
	return nil, &RaisedError{fmt.Sprintf("%.500s", s)}
}

func numbers(r *run, c *call) (any, error) {
	var n [3]int
	for i, v := range c.args {
		x, ok := integer(v)
		if !ok || i > 2 {
			return nil, errors.New("range: want one to three integers")
		}
		n[i] = x
	}
	begin, end, step := n[0], n[1], n[2]
	switch len(c.args) {
	case 0:
		return nil, errArguments
	case 1:
		begin, end, step = 0, n[0], 1
	case 2:
		step = 1
	}
	if step == 0 {
		return nil, errors.New("range: the step 0")
	}
	l := &List{}
	for i := begin; step > 0 && i < end || step < 0 && i > end; i += step {
		if l.Items = append(l.Items, i); len(l.Items) > maxRange {
			return nil, fmt.Errorf("range: more than %d numbers", maxRange)
		}
		if step > 0 && i+step < i || step < 0 && i+step > i {
			break
		}
	}
	return l, r.step(len(l.Items))
}

func newNamespace(r *run, c *call) (any, error) {
	v, err := newDict(r, c)
	if err != nil {
		return nil, err
	}
	n := &namespace{make(map[string]any, len(c.named))}
	for k, v := range v.(*Dict).values {
		if s, ok := k.(string); ok {
			n.members[s] = v
		}
	}
	return n, nil
}

// newDict returns a dictionary of another one or of pairs, and of the arguments with names.
func newDict(r *run, c *call) (any, error) {
	d := NewDict()
	if len(c.args) > 1 {
		return nil, errors.New("dict: want at most one argument without a name")
	}
	for _, v := range c.args {
		if x, ok := v.(*Dict); ok {
			pairs, err := x.items(r)
			if err != nil {
				return nil, err
			}
			v = pairs
		}
		pairs, err := r.items(v)
		if err != nil {
			return nil, err
		}
		for _, x := range pairs {
			pair, err := r.items(x)
			if err != nil || len(pair) != 2 || !hashable(pair[0]) {
				return nil, errors.Join(err, errors.New("dict: want pairs of a key and a value"))
			}
			d.Set(pair[0], pair[1])
		}
	}
	for _, k := range c.order {
		d.Set(k, c.named[k])
	}
	return d, r.step(len(d.keys))
}

// newJoiner returns a function whose value is empty at its first call, and a separator later.
func newJoiner(_ *run, c *call) (any, error) {
	next, sep := any(""), c.arg(0, "sep", ", ")
	return function(func(*run, *call) (any, error) {
		v := next
		next = sep
		return v, nil
	}), nil
}

// cycler has values that follow each other, the first one after the last.
type cycler struct {
	items []any
	at    int
}

func newCycler(_ *run, c *call) (any, error) {
	if len(c.args) == 0 {
		return nil, errors.New("cycler: want values")
	}
	return &cycler{items: c.args}, nil
}

// member returns a member of a cycler, nil without one.
func (c *cycler) member(key string) any {
	switch key {
	case "current":
		return c.items[c.at]
	case "next":
		return function(func(*run, *call) (any, error) {
			v := c.items[c.at]
			c.at = (c.at + 1) % len(c.items)
			return v, nil
		})
	case "reset":
		return function(func(*run, *call) (any, error) {
			c.at = 0
			return nil, nil
		})
	}
	return undefined{key}
}

// directives are those of strftime by their layout in package time.
var directives = map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'B': "January", 'b': "Jan",
	'A': "Monday", 'a': "Mon", 'p': "PM", 'I': "03", 'j': "002", '%': "%", 'Z': "MST", 'z': "-0700", 'F': "2006-01-02", 'T': "15:04:05"}

func formatNow(r *run, c *call) (any, error) {
	f, err := r.str(c.arg(0, "", ""))
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for i := 0; i < len(f); i++ {
		if f[i] != '%' || i+1 == len(f) {
			b.WriteByte(f[i])
			continue
		}
		i++
		plain := f[i] == '-' && i+1 < len(f) // without leading zeros
		if plain {
			i++
		}
		layout, ok := directives[f[i]]
		if !ok {
			return nil, fmt.Errorf("strftime_now: the directive %q is not supported", f[i])
		}
		s := r.formatTime(layout)
		if plain {
			s = strings.TrimLeft(s, "0")
		}
		b.WriteString(s)
	}
	return b.String(), r.made(b.Len())
}

func (r *run) formatTime(layout string) string {
	if r.now.IsZero() {
		return time.Unix(0, 0).UTC().Format(layout)
	}
	return r.now.Format(layout)
}
