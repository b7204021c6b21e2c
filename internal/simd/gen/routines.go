package main

import (
	"fmt"
	"strings"
)

// routine is an assembly function that is no row of a table of elements: its declaration
// and its text.
type routine struct{ signature, text string }

// set is the routines of one assembly file.
type set struct {
	file     string // without .s
	about    string
	routines []routine
}

// addRoutines writes sets of routines.
func addRoutines(source map[string]string, sets []set) {
	for _, s := range sets {
		text := "\n" + wrapped(s.about)
		for _, r := range s.routines {
			name, _, _ := strings.Cut(strings.TrimPrefix(r.signature, "func "), "(")
			text += fmt.Sprintf("\n// %s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n%s", r.signature, name, frameOf(r.signature).size, indented(expanded(r.text)))
		}
		source[s.file+".s"] = head(text) + text
	}
}

// head is what stands at the top of an assembly file with that text.
func head(text string) string {
	h := generated + "//go:build !purego\n\n#include \"textflag.h\"\n"
	if data := amd64Constants(text); data != "" {
		h += "#include \"lanes_amd64.h\"\n\n" + data
	}
	return h
}

// registerNames are names that loops write as <name> in place of the register, in pairs of name and register.
type registerNames []string

// in replaces the names in a text.
func (r registerNames) in(text string) string {
	pairs := make([]string, len(r))
	for i := 0; i < len(r); i += 2 {
		pairs[i], pairs[i+1] = "<"+r[i]+">", r[i+1]
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
