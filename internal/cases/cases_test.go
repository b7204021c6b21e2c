package cases

import "testing"

func TestEvery(t *testing.T) {
	for _, c := range []struct {
		all  string
		n, i int
		want bool
	}{{"", 3, 0, true}, {"", 3, 1, false}, {"", 3, 6, true}, {"1", 3, 1, true}, {"", 1, 5, true}} {
		t.Setenv(EnvAll, c.all)
		if got := Every(c.n, c.i); got != c.want {
			t.Errorf("%s=%q: case %d of every %d: %v, want %v", EnvAll, c.all, c.i, c.n, got, c.want)
		}
	}
}

func TestOf(t *testing.T) {
	for all, want := range map[string]int{"": 2, "1": 5} {
		t.Setenv(EnvAll, all)
		if got := Of(2, 5); got != want {
			t.Errorf("%s=%q: %d cases, want %d", EnvAll, all, got, want)
		}
	}
}
