package nearest

import (
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	operators := []string{"aten::add.out", "aten::add.Scalar_out", "aten::addmm.out", "aten::mul.out", "aten::relu.out", "aten::_softmax.out"}
	for _, c := range []struct{ name, want string }{
		{"aten::add.Tensor_out", "aten::add.Scalar_out"},
		{"aten::add.outt", "aten::add.out"},
		{"aten::relu_.out", "aten::relu.out"},
		{"aten::softmax.out", "aten::_softmax.out"},
		{"aten::adm.out", "aten::add.out"},
		{"custom::nothing_of_the_kind.out", ""},
		{"", ""},
		{strings.Repeat("aten::add", 20) + ".out", ""},
	} {
		if got := Name(c.name, operators); got != c.want {
			t.Errorf("%.60q: got %q, want %q", c.name, got, c.want)
		}
	}
	if got := Name("instpect", []string{"inspect", "verify", "plan"}); got != "inspect" {
		t.Errorf("got %q, want inspect", got)
	}
	if got := Name("rnu", []string{"bench", "run", "serve"}); got != "run" {
		t.Errorf("got %q, want run", got)
	}
	if got := Name("inptu", []string{"input", "output", "next"}); got != "input" {
		t.Errorf("got %q, want input", got)
	}
	if got := Name("x", nil); got != "" {
		t.Errorf("of no names: got %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"same", "same", 0}, {"rnu", "run", 1}, {"ab", "ba", 1}, {"abcd", "badc", 2},
		{"ca", "abc", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
