// Package bytesize parses and formats sizes in bytes: 4096, 64MiB, 1.5G, 100MB.
package bytesize

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a size in bytes, and a flag value.
type Size int64

// units are the suffixes, the longest first. A bare letter is binary.
var units = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1 << 40}, {"B", 1},
}

// Set implements pflag.Value.
func (b *Size) Set(text string) error {
	number, unit := text, 1.0
	for _, u := range units {
		if n, ok := strings.CutSuffix(text, u.suffix); ok {
			number, unit = n, u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(v >= 0) || v*unit >= math.MaxInt64 {
		return fmt.Errorf("%q is not a size such as 64MiB", text)
	}
	*b = Size(v * unit)
	return nil
}

// String implements pflag.Value.
func (b *Size) String() string {
	if *b == 0 {
		return ""
	}
	return Format(int64(*b))
}

// Type implements pflag.Value.
func (b *Size) Type() string { return "SIZE" }

// Format formats a size with three or four digits: 976 B, 47.7 KiB.
func Format(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		if v /= 1 << 10; v < 1<<10 {
			return fmt.Sprintf("%.1f %s", v, unit)
		}
	}
	return fmt.Sprintf("%.1f TiB", v/(1<<10))
}
