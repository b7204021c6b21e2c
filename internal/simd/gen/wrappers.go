package main

import (
	"fmt"
	"strings"
)

// comment is the Go comment of an exported function.
func comment(l *loop) string {
	formula := l.formula
	if formula == "" {
		formula = l.expr
	}
	if test, ok := strings.CutPrefix(formula, "bit("); ok {
		formula = "1 where " + strings.TrimSuffix(test, ")") + ", to 0 elsewhere"
	}
	text := l.name + " sets dst[i] to " + formula
	if l.doc != "" {
		text += ", " + l.doc
	}
	return wrapped(text + ". " + shortSlices(l.kind))
}

// shortSlices says what operands may be.
func shortSlices(k *kind) string {
	var names []string
	alias := false
	for _, o := range k.operands {
		names = append(names, o.name)
		alias = alias || o.elem == k.dst
	}
	text := "It panics where " + strings.Join(names, " or ") + " is shorter than dst."
	if !alias {
		return text
	}
	if len(names) > 1 {
		return "dst may be an operand. " + text
	}
	return "dst may be " + names[0] + ". " + text
}

// wrapped breaks a comment into lines.
func wrapped(text string) string {
	var b strings.Builder
	width := 0
	for _, word := range strings.Fields(text) {
		if n := len([]rune(word)); width == 0 || width+1+n > 90 {
			b.WriteString("\n//")
			width = 2
		}
		b.WriteString(" " + word)
		width += 1 + len([]rune(word))
	}
	return strings.TrimPrefix(b.String(), "\n") + "\n"
}

// params are Go parameters: the slices, and the scalars.
func params(l *loop, scalars bool) string {
	var list []string
	for _, g := range grouped(l.pointers()) {
		list = append(list, strings.Join(g.names, ", ")+" []"+g.elem)
	}
	if scalars && l.scalars != nil {
		list = append(list, strings.Join(l.scalars, ", ")+" "+l.scalarType())
	}
	return strings.Join(list, ", ")
}

// each writes operands with a format of their names.
func each(l *loop, format string) string {
	var list []string
	for _, o := range l.kind.operands {
		list = append(list, strings.ReplaceAll(format, "X", o.name))
	}
	return strings.Join(list, ", ")
}

// passed are the scalars of a call.
func passed(l *loop) string {
	if l.call != "" {
		return ", " + l.call
	}
	if l.scalars == nil {
		return ""
	}
	return ", " + strings.Join(l.scalars, ", ")
}

// filled puts the texts of a loop in place of their names.
func filled(l *loop, text string, more ...string) string {
	return strings.NewReplacer(append(more, "$NAME", l.name, "$VECTOR", l.vector(), "$PURE", l.pureName(), "$EXPR", l.expr,
		"$PARAMS", params(l, true), "$SCALARS", passed(l), "$OPERANDS", each(l, "X"), "$FIRST", each(l, "&X[0]"), "$REST", each(l, "X[n:]"),
		"$CHECKED", each(l, "X[:len(dst):len(X)]"), "$CUT", each(l, "X[:len(dst)]"))...).Replace(text)
}

// elementwiseWrapper is an exported function that leaves a last incomplete block to the
// Go implementation.
func elementwiseWrapper(l *loop) string {
	return comment(l) + filled(l, `func $NAME($PARAMS) {
	$OPERANDS = $CHECKED
	n := vectorized(len(dst))
	if n > 0 {
		$VECTOR(n/lanes, &dst[0], $FIRST$SCALARS)
	}
	$PURE(dst[n:], $REST$SCALARS)
}
`)
}

func elementwiseGo(l *loop) string {
	return filled(l, `func $PURE($PARAMS) {
	$OPERANDS = $CUT
	for i := range dst {
		dst[i] = $EXPR
	}
}
`)
}

// approximationWrapper is an exported function that computes a last incomplete block in
// all lanes, too.
func approximationWrapper(l *loop) string {
	scalars := passed(l) // of the Go implementation
	if l.call != "" {
		scalars = ""
	}
	return comment(l) + filled(l, `func $NAME($PARAMS) {
	src = src[:len(dst):len(src)]
	if !vector {
		$EXPR(dst, src$OWN)
		return
	}
	n := vectorized(len(dst))
	if n > 0 {
		$VECTOR(n/lanes, &dst[0], &src[0]$SCALARS)
	}
	if n < len(dst) {
		var t tail
		$VECTOR(1, &t[0], t.of(src[n:])$SCALARS)
		copy(dst[n:], t[:])
	}
}
`, "$OWN", scalars)
}

// conversionWrapper is an exported function that converts whole blocks.
func conversionWrapper(l *loop) string {
	words, bytes := "dst", "src"
	if l.kind.dst == "byte" {
		words, bytes = "src", "dst"
	}
	text := fmt.Sprintf("%s converts %s: as many elements from the start of %s as make whole vectors. It returns their number, "+
		"0 without vectors, and panics where %s is too short for them.", l.name, l.doc, words, bytes)
	length := "n"
	if l.kind.size > 1 {
		length = fmt.Sprintf("%d*n", l.kind.size)
	}
	return wrapped(text) + filled(l, `func $NAME($PARAMS) int {
	n := vectorized(len($WORDS))
	if n > 0 {
		$BYTES = $BYTES[:$LENGTH:len($BYTES)]
		$VECTOR(n/lanes, &dst[0], &src[0])
	}
	return n
}
`, "$WORDS", words, "$BYTES", bytes, "$LENGTH", length)
}
