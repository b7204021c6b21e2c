package jinja

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

var errKinds = errors.New("values of kinds that cannot be combined")

// comparisons are the operators of comparisons. It is set below: the functions refer to it.
var comparisons = map[string]operation{
	"==": func(r *run, a, b any) (any, error) { return r.equal(a, b, 0) },
	"!=": func(r *run, a, b any) (any, error) {
		same, err := r.equal(a, b, 0)
		return !same, err
	},
	"<":  ordered(func(c int) bool { return c < 0 }),
	"<=": ordered(func(c int) bool { return c <= 0 }),
	">":  ordered(func(c int) bool { return c > 0 }),
	">=": ordered(func(c int) bool { return c >= 0 }),
	"in": func(r *run, a, b any) (any, error) { return r.in(a, b) },
}

func ordered(ok func(int) bool) operation {
	return func(r *run, a, b any) (any, error) {
		c, err := r.compare(a, b)
		return ok(c), err
	}
}

// numeric returns a number, or a bool as one.
func numeric(v any) (x float64, ok bool) {
	if x, ok = v.(float64); ok {
		return x, true
	}
	n, ok := integer(v)
	return float64(n), ok
}

// integer returns an integer, or a bool as one.
func integer(v any) (n int, ok bool) {
	switch x := v.(type) {
	case int:
		return x, true
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// compare returns the order of numbers or strings.
func (r *run) compare(a, b any) (int, error) {
	i, ok := integer(a)
	k, ok2 := integer(b)
	if ok && ok2 {
		return cmp.Compare(i, k), nil // a float has no 64 bits of an integer
	}
	x, ok := numeric(a)
	y, ok2 := numeric(b)
	if ok && ok2 {
		return cmp.Compare(x, y), nil
	}
	s, ok := a.(string)
	t, ok2 := b.(string)
	if !ok || !ok2 {
		return 0, fmt.Errorf("%s and %s have no order", describe(a), describe(b))
	}
	return cmp.Compare(s, t), r.made(min(len(s), len(t)))
}

// equal reports whether values are equal, as in Python.
func (r *run) equal(a, b any, depth int) (bool, error) {
	if depth > maxNesting {
		return false, errNested
	}
	if err := r.step(1); err != nil {
		return false, err
	}
	i, ok := integer(a)
	k, ok2 := integer(b)
	if ok && ok2 {
		return i == k, nil
	}
	x, ok := numeric(a)
	y, ok2 := numeric(b)
	if ok && ok2 {
		return x == y, nil
	}
	switch x := a.(type) {
	case nil:
		return b == nil, nil
	case string:
		y, ok := b.(string)
		return ok && x == y, r.made(min(len(x), len(y)))
	case undefined:
		_, ok := b.(undefined)
		return ok, nil
	case *List:
		y, ok := b.(*List)
		if !ok || len(x.Items) != len(y.Items) || x.Tuple != y.Tuple {
			return false, nil
		}
		return r.all(len(x.Items), func(i int) (bool, error) { return r.equal(x.Items[i], y.Items[i], depth+1) })
	case *Dict:
		y, ok := b.(*Dict)
		if !ok || len(x.keys) != len(y.keys) {
			return false, nil
		}
		return r.all(len(x.keys), func(i int) (bool, error) {
			other, ok := y.values[x.keys[i]]
			if !ok {
				return false, nil
			}
			return r.equal(x.values[x.keys[i]], other, depth+1)
		})
	case *namespace:
		y, ok := b.(*namespace)
		return ok && x == y, nil
	}
	return false, nil
}

// all reports whether n conditions hold.
func (r *run) all(n int, f func(i int) (bool, error)) (bool, error) {
	for i := range n {
		if ok, err := f(i); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// in reports whether b contains a.
func (r *run) in(a, b any) (bool, error) {
	switch x := b.(type) {
	case string:
		s, ok := a.(string)
		if !ok {
			return false, fmt.Errorf("%s in a string", describe(a))
		}
		return strings.Contains(x, s), r.made(len(x))
	case *Dict:
		if !hashable(a) {
			return false, nil
		}
		if err := r.keyed(a); err != nil {
			return false, err
		}
		_, ok := x.values[a]
		return ok, nil
	case *List:
		for _, item := range x.Items {
			if same, err := r.equal(a, item, 0); same || err != nil {
				return same, err
			}
		}
		return false, nil
	case undefined:
		return false, nil
	}
	return false, fmt.Errorf("in %s", describe(b))
}

func (r *run) plus(a, b any) (any, error) {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return r.concat(x, y)
		}
	case *List:
		if y, ok := b.(*List); ok {
			n := len(x.Items) + len(y.Items)
			if err := errors.Join(r.step(n), r.made(16*n)); err != nil {
				return nil, err
			}
			return &List{Items: append(append(make([]any, 0, n), x.Items...), y.Items...), Tuple: x.Tuple}, nil
		}
	}
	return arithmetic(a, b, func(x, y int) (int, bool) { return x + y, (x+y > x) == (y > 0) }, func(x, y float64) float64 { return x + y })
}

func (r *run) concat(a, b string) (any, error) {
	if err := r.made(len(a) + len(b)); err != nil {
		return nil, err
	}
	return a + b, nil
}

// arithmetic computes with integers, or with numbers if one is a fraction or the result is too large.
func arithmetic(a, b any, ints func(x, y int) (int, bool), floats func(x, y float64) float64) (any, error) {
	if x, ok := integer(a); ok {
		if y, ok := integer(b); ok {
			n, ok := ints(x, y)
			if !ok {
				return nil, errors.New("an integer that is too large")
			}
			return n, nil
		}
	}
	x, ok := numeric(a)
	y, ok2 := numeric(b)
	if !ok || !ok2 {
		return nil, fmt.Errorf("%w: %s and %s", errKinds, describe(a), describe(b))
	}
	return floats(x, y), nil
}

func (r *run) minus(a, b any) (any, error) {
	return arithmetic(a, b, func(x, y int) (int, bool) { return x - y, (x-y < x) == (y > 0) }, func(x, y float64) float64 { return x - y })
}

func (r *run) times(a, b any) (any, error) {
	if s, ok := a.(string); ok {
		n, ok := integer(b)
		n = max(n, 0)
		if !ok || n > maxBytes {
			return nil, errKinds
		}
		if err := r.made(len(s) * min(n, maxBytes/max(len(s), 1)+1)); err != nil {
			return nil, err
		}
		return strings.Repeat(s, n), nil
	}
	return arithmetic(a, b, func(x, y int) (int, bool) { return x * y, x == 0 || x*y/x == y }, func(x, y float64) float64 { return x * y })
}

var errZero = errors.New("a division by zero")

func (r *run) over(a, b any) (any, error) {
	x, ok := numeric(a)
	y, ok2 := numeric(b)
	switch {
	case !ok || !ok2:
		return nil, errKinds
	case y == 0:
		return nil, errZero
	}
	return x / y, nil
}

func (r *run) floor(a, b any) (any, error) {
	if y, ok := numeric(b); ok && y == 0 {
		return nil, errZero
	}
	return arithmetic(a, b, func(x, y int) (int, bool) {
		q := x / y
		if x%y != 0 && (x < 0) != (y < 0) {
			q--
		}
		return q, true
	}, func(x, y float64) float64 { return math.Floor(x / y) })
}

func (r *run) modulo(a, b any) (any, error) {
	if y, ok := numeric(b); ok && y == 0 {
		return nil, errZero
	}
	return arithmetic(a, b, func(x, y int) (int, bool) {
		m := x % y
		if m != 0 && (m < 0) != (y < 0) {
			m += y
		}
		return m, true
	}, func(x, y float64) float64 { return x - y*math.Floor(x/y) })
}

// join is the operator ~.
func (r *run) join(a, b any) (any, error) {
	s, err := r.str(a)
	if err != nil {
		return nil, err
	}
	t, err := r.str(b)
	if err != nil {
		return nil, err
	}
	return r.concat(s, t)
}

// index returns an element, or a member.
func (r *run) index(v, key any) (any, error) {
	switch x := v.(type) {
	case *Dict:
		if err := r.keyed(key); err != nil {
			return nil, err
		}
		if hashable(key) {
			if item, ok := x.values[key]; ok {
				return item, nil
			}
		}
	case *List, string:
		n, ok := integer(key)
		if !ok {
			break
		}
		items, err := r.items(x)
		if err != nil {
			return nil, err
		}
		if n < 0 {
			n += len(items)
		}
		if n < 0 || n >= len(items) {
			return undefined{"an element"}, nil
		}
		return items[n], nil
	case undefined:
		return nil, fmt.Errorf("%.60q is not defined", x.name)
	}
	if s, ok := key.(string); ok {
		return r.member(v, s)
	}
	return undefined{"an element"}, nil
}

// slice returns a part of a list or a string.
func (r *run) slice(v any, parts [3]expr) (any, error) {
	switch x := v.(type) {
	case undefined:
		return nil, fmt.Errorf("%.60q is not defined", x.name)
	case *Dict:
		return undefined{"the slice of a dictionary"}, nil
	}
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	var at [3]*int
	for i, x := range parts {
		if x == nil {
			continue
		}
		p, err := x(r)
		if err != nil {
			return nil, err
		}
		if n, ok := integer(p); ok {
			at[i] = &n
		} else if p != nil {
			return nil, fmt.Errorf("a slice with %s", describe(p))
		}
	}
	list, err := sliced(items, at)
	if l, ok := v.(*List); ok || err != nil {
		return &List{Items: list, Tuple: ok && l.Tuple}, err
	}
	var b strings.Builder
	for _, c := range list {
		b.WriteString(c.(string))
	}
	return b.String(), nil
}

// sliced returns the elements of a slice, as in Python.
func sliced(items []any, at [3]*int) (list []any, err error) {
	step, n := 1, len(items)
	if at[2] != nil {
		step = *at[2]
	}
	if step == 0 {
		return nil, errors.New("a slice with the step 0")
	}
	low, high := 0, n
	if step < 0 {
		low, high = -1, n-1
	}
	bound := func(p *int, otherwise int) int {
		if p == nil {
			return otherwise
		}
		i := *p
		if i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	first, last := low, high
	if step < 0 {
		first, last = high, low
	}
	begin, end := bound(at[0], first), bound(at[1], last)
	for i := begin; step > 0 && i < end || step < 0 && i > end; i += step {
		list = append(list, items[i])
		if step > n || step < -n {
			break
		}
	}
	return list, nil
}

// path returns a member of a member, by names separated by points, or an element.
func (r *run) path(v, key any) (any, error) {
	s, ok := key.(string)
	if !ok {
		return r.index(v, key)
	}
	if err := r.keyed(s); err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(s, ".") {
		var err error
		if n, bad := strconv.Atoi(part); bad == nil {
			v, err = r.index(v, n)
		} else if d, ok := v.(*Dict); ok {
			if item, ok := d.values[part]; ok {
				v = item
			} else {
				v = undefined{part}
			}
		} else {
			v, err = r.member(v, part)
		}
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}

// operation computes a result of two values.
type operation func(r *run, a, b any) (any, error)
