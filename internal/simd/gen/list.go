package main

import (
	"fmt"
	"slices"
	"strings"
)

// list writes the exported functions by their shapes, for tests and benchmarks: so a
// row of the table is tested as soon as it stands there.
func list() string {
	shapes := []struct {
		name string
		kind *kind
	}{
		{"unaryFloats", unaryFloat}, {"binaryFloats", binaryFloat}, {"compareFloats", compareFloat},
		{"unaryInts", unaryInt}, {"binaryInts", binaryInt}, {"compareInts", compareInt},
		{"selections", selection}, {"approximations", approximation},
	}
	var b strings.Builder
	for _, s := range shapes {
		fmt.Fprintf(&b, "\t%s = []pair[func(%s)]{\n", s.name, params(&loop{kind: s.kind}, false))
		for _, f := range families {
			for i := range f.loops {
				if l := &f.loops[i]; l.kind == s.kind {
					b.WriteString(pairs(l))
				}
			}
		}
		b.WriteString("\t}\n")
	}
	conversions := [][3]string{ // name, and types of dst and src
		{"widenInts", "int32", "byte"}, {"widenFloats", "float32", "byte"}, {"narrowInts", "byte", "int32"}, {"narrowFloats", "byte", "float32"},
	}
	for _, c := range conversions {
		fmt.Fprintf(&b, "\t%s = []conversion[func(dst []%s, src []%s) int]{\n", c[0], c[1], c[2])
		for _, l := range slices.Concat(widenings.loops, narrowings.loops) {
			if l.kind.dst == c[1] && l.kind.operands[0].elem == c[2] {
				fmt.Fprintf(&b, "\t\t{%q, %d, %s},\n", l.name, l.kind.size, l.name)
			}
		}
		b.WriteString("\t}\n")
	}
	return generated + "package simd\n\n" + imports(b.String()) +
		"// The functions of the table by their shapes: as exported, and in Go.\nvar (\n" + b.String() + ")\n"
}

// pairs are the calls that tests make of a row.
func pairs(l *loop) string {
	pure := l.expr
	if l.kind.pure != nil {
		pure = l.pureName()
	}
	if l.args == nil {
		return fmt.Sprintf("\t\t{%q, %s, %s},\n", l.name, l.name, pure)
	}
	text, slices := "", "dst, "+each(l, "X")
	for _, args := range l.args {
		head := fmt.Sprintf("func(%s) ", params(l, false))
		text += fmt.Sprintf("\t\t{\n\"%s(%s)\",\n %s{ %s(%s, %s) },\n %s{ %s(%s, %s) },\n},\n",
			l.name, args, head, l.name, slices, args, head, pure, slices, args)
	}
	return text
}
