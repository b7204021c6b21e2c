package xnnpack

import (
	"testing"
	"time"
)

// TestEstimate compares graphs whose times must stand in a proportion.
func TestEstimate(t *testing.T) {
	of := func(b Backend, build func(c *calls) val) time.Duration {
		c := newCalls(1)
		c.outputs(build(c))
		d, err := b.Estimate(c.g, 1)
		if err != nil {
			t.Error(err)
		}
		return d
	}
	convolve := func(in, to, size, kernel, groups int, order []uint8) func(c *calls) val {
		return func(c *calls) val {
			return c.call("aten::convolution.out", []out{{rank: 4, order: order}}, c.inputIn(order, 1, in, size, size), c.constant(to, in/groups, kernel, kernel), nil,
				[]int{1, 1}, []int{kernel / 2, kernel / 2}, []int{1, 1}, false, []int{0, 0}, groups)[0]
		}
	}
	for _, test := range []struct {
		name   string
		a, b   func(c *calls) val
		lo, hi float64 // b's time, in times of a's
	}{
		{"twice the channels", convolve(32, 64, 28, 3, 1, nhwc), convolve(32, 128, 28, 3, 1, nhwc), 1.9, 2.1},
		{"transposes at the border", convolve(32, 64, 28, 1, 1, nhwc), convolve(32, 64, 28, 1, 1, nil), 1.2, 3},
		{"5x5 and 7x7 depthwise windows", convolve(32, 32, 28, 5, 32, nhwc), convolve(32, 32, 28, 7, 32, nhwc), 1.5, 60},
	} {
		for _, b := range compilers() {
			x, y := of(b, test.a), of(b, test.b)
			if ratio := float64(y) / float64(x); ratio < test.lo || ratio > test.hi {
				t.Errorf("%s, %s: %v and %v, ratio %.2f, want %v to %v", test.name, b.Engine, x, y, ratio, test.lo, test.hi)
			}
		}
	}
}
