package goengine

import geometry "github.com/etrun-go/etrun/kernels/window"

// taps are the elements [lo, hi) of a window, those inside the input, along one dimension. Element
// k is at position from + k·step.
type taps struct{ from, step, lo, hi int }

// tapsAt clips a window of n elements at distance step, which begins at position from of an input
// of the given size.
func tapsAt(from, n, step, size int) taps {
	lo, hi := geometry.Inside(n, size, from, step)
	return taps{from, step, lo, hi}
}

func (t taps) len() int { return max(t.hi-t.lo, 0) }

// place returns the position of element k.
func (t taps) place(k int) int { return t.from + k*t.step }
