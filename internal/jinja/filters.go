package jinja

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// filterFunc computes a filter's result.
type filterFunc func(r *run, v any, c *call) (any, error)

// filters are the filters. It is set below: the functions refer to it.
var filters map[string]filterFunc

func init() {
	filters = map[string]filterFunc{
		"trim": method("strip"), "upper": method("upper"), "lower": method("lower"), "title": titleFilter,
		"capitalize": method("capitalize"), "replace": method("replace"),
		"length": lengthFilter, "count": lengthFilter, "default": defaultFilter, "d": defaultFilter, "join": joinFilter,
		"items": itemsFilter, "list": listFilter, "first": firstFilter, "last": lastFilter, "string": stringFilter, "safe": stringFilter,
		"int": intFilter, "float": floatFilter, "abs": absFilter, "round": roundFilter, "tojson": jsonFilter, "indent": indentFilter,
		"reverse": reverseFilter, "sum": sumFilter, "map": mapFilter, "unique": uniqueFilter, "sort": sortFilter, "dictsort": dictsortFilter,
		"min": extreme(-1), "max": extreme(1), "attr": attrFilter,
		"select": selecting(true, false), "reject": selecting(false, false),
		"selectattr": selecting(true, true), "rejectattr": selecting(false, true),
	}
}

// method is a filter that is a method of strings.
func method(key string) filterFunc {
	return func(r *run, v any, c *call) (any, error) {
		s, err := r.str(v)
		if err != nil {
			return nil, err
		}
		return stringMethods[key](r, s, c)
	}
}

func titleFilter(r *run, v any, c *call) (any, error) {
	s, err := r.str(v)
	if err != nil {
		return nil, err
	}
	return changing(titleWords)(r, s, c)
}

func lengthFilter(r *run, v any, _ *call) (any, error) {
	n, err := length(v)
	return n, errors.Join(err, r.read(v))
}

// read counts the bytes of a string that is read.
func (r *run) read(v any) error {
	s, _ := v.(string)
	return r.made(len(s))
}

func defaultFilter(_ *run, v any, c *call) (any, error) {
	_, missing := v.(undefined)
	if missing || truth(c.arg(1, "boolean", false)) && !truth(v) {
		return c.arg(0, "default_value", ""), nil
	}
	return v, nil
}

func attrFilter(r *run, v any, c *call) (any, error) {
	s, err := r.str(c.arg(0, "name", ""))
	if err != nil {
		return nil, err
	}
	if _, ok := v.(*Dict); ok && dictMethods[s] == nil { // whose keys are no attributes
		return undefined{s}, nil
	}
	return r.member(v, s)
}

func itemsFilter(r *run, v any, _ *call) (any, error) {
	switch x := v.(type) {
	case undefined:
		return &List{}, nil
	case *Dict:
		return x.items(r)
	}
	return nil, fmt.Errorf("%s, want a dictionary", describe(v))
}

func listFilter(r *run, v any, _ *call) (any, error) {
	items, err := r.items(v)
	return &List{Items: items}, err
}

func firstFilter(r *run, v any, _ *call) (any, error) {
	items, err := r.items(v)
	if len(items) == 0 {
		return undefined{"first of no elements"}, err
	}
	return items[0], err
}

func lastFilter(r *run, v any, _ *call) (any, error) {
	items, err := r.items(v)
	if len(items) == 0 {
		return undefined{"last of no elements"}, err
	}
	return items[len(items)-1], err
}

func stringFilter(r *run, v any, _ *call) (any, error) { return r.str(v) }

func intFilter(r *run, v any, c *call) (any, error) {
	if err := r.read(v); err != nil {
		return nil, err
	}
	switch x := v.(type) {
	case int:
		return x, nil
	case bool:
		n, _ := integer(x)
		return n, nil
	case float64:
		if math.Abs(x) < 1<<62 {
			return int(x), nil
		}
	case string:
		s := strings.TrimFunc(x, isSpace)
		if n, err := strconv.Atoi(s); err == nil {
			return n, nil
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < 1<<62 {
			return int(f), nil
		}
	}
	return c.arg(0, "default", 0), nil
}

func floatFilter(r *run, v any, c *call) (any, error) {
	if err := r.read(v); err != nil {
		return nil, err
	}
	if x, ok := numeric(v); ok {
		return x, nil
	}
	if s, ok := v.(string); ok {
		if f, err := strconv.ParseFloat(strings.TrimFunc(s, isSpace), 64); err == nil {
			return f, nil
		}
	}
	return c.arg(0, "default", 0.0), nil
}

func absFilter(r *run, v any, _ *call) (any, error) {
	x, ok := numeric(v)
	if n, isBool := v.(bool); isBool {
		v, _ = integer(n)
	}
	switch {
	case !ok:
		return nil, errKinds
	case x < 0:
		return r.minus(0, v)
	}
	return v, nil
}

func roundFilter(_ *run, v any, c *call) (any, error) {
	x, ok := numeric(v)
	digits, ok2 := integer(c.arg(0, "precision", 0))
	if !ok || !ok2 || digits < -15 || digits > 15 {
		return nil, errKinds
	}
	method, _ := c.arg(1, "method", "common").(string)
	scale := math.Pow10(digits)
	n, whole := integer(v)
	switch {
	case method == "ceil":
		return math.Ceil(x*scale) / scale, nil
	case method == "floor":
		return math.Floor(x*scale) / scale, nil
	case method != "common":
		return nil, errors.New("want the method common, ceil or floor")
	case whole && digits >= 0:
		return n, nil
	case digits < 0:
		unit := math.Pow10(-digits)
		if x = math.RoundToEven(x/unit) * unit; whole {
			return int(x), nil
		}
		return x, nil
	case math.IsInf(x, 0) || math.IsNaN(x):
		return x, nil
	}
	return strconv.ParseFloat(strconv.FormatFloat(x, 'f', digits, 64), 64)
}

func jsonFilter(r *run, v any, c *call) (any, error) {
	j := jsonWriter{run: r, comma: ", ", colon: ": ", indent: -1, ascii: truth(c.named["ensure_ascii"]), sorted: truth(c.named["sort_keys"])}
	if n, ok := integer(c.arg(0, "indent", nil)); ok {
		if n < 0 || n > 16 {
			return nil, errors.New("want an indentation of 0 to 16")
		}
		j.indent, j.comma = n, ","
	}
	if l, ok := c.named["separators"].(*List); ok && len(l.Items) == 2 {
		j.comma, _ = l.Items[0].(string)
		j.colon, _ = l.Items[1].(string)
	}
	err := j.value(v, 0)
	return j.b.String(), err
}

func indentFilter(r *run, v any, c *call) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("%s, want a string", describe(v))
	}
	indent, ok := c.arg(0, "width", 4).(string)
	if !ok {
		n, ok := integer(c.arg(0, "width", 4))
		if !ok || n < 0 || n > 256 {
			return nil, errors.New("want a width of 0 to 256")
		}
		indent = strings.Repeat(" ", n)
	}
	if err := r.step(strings.Count(s, "\n")); err != nil {
		return nil, err
	}
	lines := strings.Split(s, "\n")
	if err := r.made(len(s) + len(lines)*len(indent)); err != nil {
		return nil, err
	}
	for i := range lines {
		if i == 0 && truth(c.arg(1, "first", false)) || i > 0 && (lines[i] != "" || truth(c.arg(2, "blank", false))) {
			lines[i] = indent + lines[i]
		}
	}
	return strings.Join(lines, "\n"), nil
}

func reverseFilter(r *run, v any, _ *call) (any, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	if _, ok := v.(string); !ok {
		return &List{Items: items}, nil
	}
	return joinFilter(r, &List{Items: items}, &call{})
}

func sumFilter(r *run, v any, c *call) (sum any, err error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	sum = c.arg(1, "start", 0)
	for _, x := range items {
		if key := c.arg(0, "attribute", nil); key != nil {
			if x, err = r.path(x, key); err != nil {
				return nil, err
			}
		}
		if sum, err = r.plus(sum, x); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// mapFilter applies a filter to the elements, or returns a member of each.
func mapFilter(r *run, v any, c *call) (any, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	list := &List{Items: make([]any, len(items))}
	key, byMember := c.named["attribute"]
	f := filterFunc(nil)
	if !byMember {
		s, _ := c.arg(0, "", "").(string)
		if f = filters[s]; f == nil {
			return nil, fmt.Errorf("the filter %.40q is not supported", s)
		}
	}
	for i, x := range items {
		if byMember {
			list.Items[i], err = r.path(x, key)
			if _, missing := list.Items[i].(undefined); missing && c.named["default"] != nil {
				list.Items[i] = c.named["default"]
			}
		} else {
			list.Items[i], err = f(r, x, &call{args: c.args[1:], named: c.named})
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// selecting is a filter that keeps the elements of which a test, or a test of a member, is as wanted.
func selecting(want, byMember bool) filterFunc {
	return func(r *run, v any, c *call) (any, error) {
		items, err := r.items(v)
		if err != nil {
			return nil, err
		}
		args := c.args
		var key any
		if byMember {
			if len(args) == 0 {
				return nil, errors.New("want the name of a member")
			}
			key, args = args[0], args[1:]
		}
		test, arg, err := testOf(args)
		if err != nil {
			return nil, err
		}
		list := &List{}
		for _, x := range items {
			item := x
			if byMember {
				if item, err = r.path(x, key); err != nil {
					return nil, err
				}
			}
			ok, err := test(r, item, arg)
			if err != nil {
				return nil, err
			}
			if ok == want {
				list.Items = append(list.Items, x)
			}
		}
		return list, nil
	}
}

// testOf returns the test that arguments name, that of truth without any.
func testOf(args []any) (testFunc, any, error) {
	if len(args) == 0 {
		return func(_ *run, v, _ any) (bool, error) { return truth(v), nil }, nil, nil
	}
	s, _ := args[0].(string)
	f := tests[s]
	if f == nil {
		return nil, nil, fmt.Errorf("the test %.40q is not supported", s)
	}
	if len(args) > 1 {
		return f, args[1], nil
	}
	return f, nil, nil
}
