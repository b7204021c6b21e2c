package main

import (
	"strconv"
	"strings"
	"unicode"
)

// printable makes text from a file safe for a terminal: quoted if it contains unprintable
// characters, and truncated if it is long.
func printable(s string) string {
	const maxLength = 120
	if len(s) > maxLength {
		return strconv.Quote(s[:maxLength]) + "…"
	}
	return legible(s)
}

// legible is printable without the truncation, for text whose parts are truncated.
func legible(s string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	if strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}
