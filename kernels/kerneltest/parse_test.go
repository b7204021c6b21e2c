package kerneltest

import (
	"strings"
	"testing"
)

func TestCallsReadBack(t *testing.T) {
	for line := range strings.Lines(callsText) {
		line = strings.TrimSpace(line)
		op, args, err := ParseCall(line)
		if err != nil {
			t.Error(err)
			continue
		}
		texts := make([]string, len(args))
		for i, a := range args {
			texts[i] = withoutFloats(argText(a))
		}
		if got := op + "(" + strings.Join(texts, ", ") + ")"; got != withoutFloats(line) {
			t.Errorf("read back\n got %s\nwant %s", got, line)
		}
	}
}

// withoutFloats removes elements: a tensor without them is parsed as zeros.
func withoutFloats(s string) string {
	for {
		i := strings.IndexByte(s, '{')
		if i < 0 {
			return s
		}
		s = s[:i] + s[i+1+strings.IndexByte(s[i:], '}'):]
	}
}

func TestParseCallRefuses(t *testing.T) {
	for _, line := range []string{
		"", "a::b", "a::b(", "a::b(1", "a::b(1,2)", "a::b([1 2)", `a::b("x)`, "a::b(x)", "a::b(float33[1])",
		"a::b(float32[1)", "a::b(float32[-1])", "a::b(float32[2 3]order[0 0])", "a::b(float32[2]{1})", "a::b(float32[2]{1 2)",
		"a::b(float32[2]maxx)",
	} {
		if _, args, err := ParseCall(line); err == nil {
			t.Errorf("%q accepted as %v", line, args)
		}
	}
}
