package main

import (
	"strconv"
	"strings"
	"unicode"
)

// printable is text from a file as a terminal may have it: quoted where it holds
// anything but printable characters, and cut where it is long.
func printable(s string) string {
	const most = 120
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return legible(s)
}

// legible is printable without the cut, for text whose parts were cut.
func legible(s string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	if strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}
