package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes text from a file safe for a terminal: quoted if it contains unprintable
// characters, and truncated if it is long.
func Printable(s string) string {
	const maxLength = 120
	if len(s) > maxLength {
		return strconv.Quote(s[:maxLength]) + "…"
	}
	return Legible(s)
}

// Legible is printable without the truncation, for text whose parts are truncated.
func Legible(s string) string {
	if strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}

func odd(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }

// Escaped replaces unprintable characters, except line breaks and tabs, by escape sequences: errors
// and notes may contain text from files, which must not control the terminal.
func Escaped(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if odd(r) && r != '\n' && r != '\t' {
			quoted := strconv.Quote(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// Count formats n with its noun.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Harmless replaces control characters, which could move the cursor or change the terminal.
func Harmless(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return unicode.ReplacementChar
	}
	return r
}
