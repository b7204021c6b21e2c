package jinja

import "strings"

// testFunc is a test of a value, which may have an argument.
type testFunc func(r *run, v, arg any) (bool, error)

// takesOne are the tests with an argument, which may have no brackets.
var takesOne = map[string]bool{"equalto": true, "eq": true, "==": true, "ne": true, "!=": true, "in": true, "divisibleby": true, "lt": true,
	"gt": true, "le": true, "ge": true, "lessthan": true, "greaterthan": true, "sameas": true, "<": true, ">": true, "<=": true, ">=": true}

var tests = map[string]testFunc{
	"defined":   func(_ *run, v, _ any) (bool, error) { return !isUndefined(v), nil },
	"undefined": func(_ *run, v, _ any) (bool, error) { return isUndefined(v), nil },
	"none":      func(_ *run, v, _ any) (bool, error) { return v == nil, nil },
	"true":      func(_ *run, v, _ any) (bool, error) { return v == true, nil },
	"false":     func(_ *run, v, _ any) (bool, error) { return v == false, nil },
	"string":    is[string], "boolean": is[bool], "integer": is[int], "float": is[float64], "mapping": is[*Dict],
	"callable": func(_ *run, v, _ any) (bool, error) { _, ok := v.(function); return ok || isUndefined(v), nil }, // as in Jinja2
	"number":   func(_ *run, v, _ any) (bool, error) { _, ok := numeric(v); return ok, nil },
	"sequence": isList, "iterable": isList,
	"odd":         func(r *run, v, _ any) (bool, error) { return r.remains(v, 1) },
	"even":        func(r *run, v, _ any) (bool, error) { return r.remains(v, 0) },
	"divisibleby": divisible,
	"upper":       inCase(upper),
	"lower":       inCase(lower),
	"in":          func(r *run, v, arg any) (bool, error) { return r.in(v, arg) },
	"sameas":      func(r *run, v, arg any) (bool, error) { return r.equal(v, arg, 0) },
	"equalto":     compared("=="), "eq": compared("=="), "==": compared("=="), "ne": compared("!="), "!=": compared("!="),
	"lt": compared("<"), "lessthan": compared("<"), "<": compared("<"), "gt": compared(">"), "greaterthan": compared(">"), ">": compared(">"),
	"le": compared("<="), "<=": compared("<="), "ge": compared(">="), ">=": compared(">="),
}

func isUndefined(v any) bool { _, ok := v.(undefined); return ok }

// is is the test of a type.
func is[T any](_ *run, v, _ any) (bool, error) {
	_, ok := v.(T)
	return ok, nil
}

// isList is the test of what has elements; strings and dictionaries have some.
func isList(_ *run, v, _ any) (bool, error) {
	switch v.(type) {
	case string, *List, *Dict, undefined:
		return true, nil
	}
	return false, nil
}

func divisible(r *run, v, arg any) (bool, error) {
	m, err := r.modulo(v, arg)
	x, _ := numeric(m)
	return err == nil && x == 0, err
}

// remains reports whether a number modulo 2 is another one.
func (r *run) remains(v any, want float64) (bool, error) {
	m, err := r.modulo(v, 2)
	x, _ := numeric(m)
	return err == nil && x == want, err
}

// inCase is the test of the case of a value's text.
func inCase(f func(string) string) testFunc {
	return func(r *run, v, _ any) (bool, error) {
		s, err := r.str(v)
		if err != nil {
			return false, err
		}
		return r.cased(s, f)
	}
}

// cased reports whether a string has letters, all in one case.
func (r *run) cased(s string, f func(string) string) (bool, error) {
	if err := r.made(4 * len(s)); err != nil {
		return false, err
	}
	return s == f(s) && strings.ToLower(s) != strings.ToUpper(s), nil
}

// compared is the test of an operator.
func compared(operator string) testFunc {
	return func(r *run, v, arg any) (bool, error) {
		ok, err := comparisons[operator](r, v, arg)
		return truth(ok), err
	}
}
