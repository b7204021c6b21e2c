package cli

import (
	"strings"
	"testing"
)

func TestHarmless(t *testing.T) {
	got := strings.Map(Harmless, "a\x1b[31mb\r\n\tc\u009bd\x00é漢")
	if want := "a\uFFFD[31mb\uFFFD\n\tc\uFFFDd\uFFFDé漢"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
