package bytesize

import "testing"

func TestSet(t *testing.T) {
	cases := []struct {
		text string
		want int64
	}{
		{"0", 0}, {"4096", 4096}, {"4096B", 4096}, {"64MiB", 64 << 20}, {"64M", 64 << 20}, {"64MB", 64e6},
		{"1.5G", 3 << 29}, {"2 KiB", 2048}, {"1TB", 1e12}, {"10kB", 10e3},
	}
	for _, c := range cases {
		var b Size
		if err := b.Set(c.text); err != nil || int64(b) != c.want {
			t.Errorf("%q: got %d, %v, want %d", c.text, b, err, c.want)
		}
	}
	for _, text := range []string{"", "x", "-1", "1EiB", "9e30", "NaN", "1MiBs", "Inf"} {
		var b Size
		if err := b.Set(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, b)
		}
	}
}

func TestFormat(t *testing.T) {
	cases := map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 3 << 19: "1.5 MiB", 5 << 30: "5.0 GiB", 7 << 40: "7.0 TiB"}
	for n, want := range cases {
		if got := Format(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
