package duration

import (
	"math"
	"regexp"
	"testing"
	"time"
)

func TestFormat(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                     "0s",
		1:                                     "1ns",
		999:                                   "999ns",
		1_000:                                 "1.000µs",
		5_000:                                 "5.000µs",
		42_787:                                "42.79µs",
		999_949:                               "999.9µs",
		999_950:                               "1.000ms",
		1_562_400:                             "1.562ms",
		42_787_240:                            "42.79ms",
		278_100_000:                           "278.1ms",
		9_999_600_000:                         "10.00s",
		59_994 * time.Millisecond:             "59.99s",
		59_995 * time.Millisecond:             "1m0s",
		90 * time.Second:                      "1m30s",
		time.Hour + 2*time.Minute + 3*1e9 + 4: "1h2m3s",
		-42_787:                               "-42.79µs",
	} {
		if got := Format(d); got != want {
			t.Errorf("%d: got %q, want %q", d, got, want)
		}
	}
}

// TestFormatRange requires one form at all orders of magnitude, and a text that time.ParseDuration reads as the same
// time within half a unit of the fourth digit.
func TestFormatRange(t *testing.T) {
	form := regexp.MustCompile(`^(0s|\d{1,3}ns|(\d\.\d{3}|\d\d\.\d\d|\d{3}\.\d)(µs|ms)|(\d\.\d{3}|\d\d\.\d\d)s|(\d+h)?\d+m[\d.]+s)$`)
	for d := time.Duration(1); d > 0 && d < math.MaxInt64/11; d += 1 + d/997 {
		text := Format(d)
		parsed, err := time.ParseDuration(text)
		if err != nil || !form.MatchString(text) || math.Abs(float64(parsed-d)) > 0.0005001*float64(d) {
			t.Fatalf("%d: %q, %v, %v", d, text, parsed, err)
		}
	}
}

func TestFormatMS(t *testing.T) {
	for ms, want := range map[float64]string{
		0: "0s", 3e-05: "30ns", 0.003968: "3.968µs", 41.37: "41.37ms", 1e300: Format(math.MaxInt64),
		math.Inf(1): Format(math.MaxInt64), math.Inf(-1): Format(math.MinInt64),
	} {
		if got := FormatMS(ms); got != want {
			t.Errorf("%v ms: got %q, want %q", ms, got, want)
		}
	}
	if got := FormatMS(math.NaN()); got != "0s" {
		t.Errorf("NaN: got %q", got)
	}
}
