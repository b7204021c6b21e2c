package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWinogradTransforms compares the transforms with the loops in Go, which compute the same numbers.
func TestWinogradTransforms(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 3))
	inf := float32(math.Inf(1))
	for _, c := range []int{16, 32, 48, 112} {
		for _, gap := range []int{0, 5} {
			pixel, each := c+gap, c+2*gap
			row := 4*pixel + gap
			x, v, want := newGuarded(r, 3*row+3*pixel+c), newGuarded(r, 15*each+c), make([]float32, 15*each+c)
			copy(want, v.data)
			WinogradInput(c, x.data, row, pixel, v.data, each)
			winogradInputGo(c, x.data, row, pixel, want, each)
			checkRows(t, fmt.Sprintf("input, %d channels, gaps of %d", c, gap), v, want)
			for _, bounds := range [][2]float32{{-inf, inf}, {0, 6}} {
				y, want, faults := newGuarded(r, row+pixel+c), make([]float32, row+pixel+c), float32(0)
				copy(want, y.data)
				finite := WinogradOutput(c, v.data, each, y.data, row, pixel, bounds[0], bounds[1])
				winogradOutputGo(c, v.data, each, want, row, pixel, bounds[0], bounds[1], &faults)
				checkRows(t, fmt.Sprintf("output, %d channels, gaps of %d", c, gap), y, want)
				if !finite || faults != 0 {
					t.Errorf("%d channels: not finite", c)
				}
			}
		}
	}
}

// TestWinogradFinite sets single sums to NaN and infinities.
func TestWinogradFinite(t *testing.T) {
	const c = 32
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for at := range 16 * c {
			m, y := make([]float32, 16*c), make([]float32, 4*c)
			m[at] = float32(bad)
			if WinogradOutput(c, m, c, y, 2*c, c, 0, 6) {
				t.Fatalf("%v at %d is reported as finite", bad, at)
			}
		}
	}
}

// TestWinogradFilter compares the convolution of a block with the sums of its windows. All numbers are small integers, so that both
// are exact.
func TestWinogradFilter(t *testing.T) {
	const c = WinogradLanes
	r := rand.New(rand.NewPCG(1, 9))
	x, w, u, v, y := make([]float32, 16*c), make([]float32, 9*c), make([]float32, 16*c), make([]float32, 16*c), make([]float32, 4*c)
	for range 100 {
		for _, list := range [][]float32{x, w} {
			for i := range list {
				list[i] = float32(r.IntN(15) - 7)
			}
		}
		WinogradFilter(c, w, u, c)
		WinogradInput(c, x, 4*c, c, v, c)
		Mul(v, v, u)
		WinogradOutput(c, v, c, y, 2*c, c, -1e9, 1e9)
		want := make([]float32, 4*c)
		for i := range want {
			for tap := range 9 {
				want[i] += x[(i/(2*c)+tap/3)*4*c+(i/c%2+tap%3)*c+i%c] * w[tap*c+i%c]
			}
		}
		if !slices.Equal(y, want) {
			t.Fatalf("got %v\nwant %v", y, want)
		}
	}
}

// TestWinogradShort passes slices that are too short.
func TestWinogradShort(t *testing.T) {
	const c = WinogradLanes
	long, short := make([]float32, 16*c), make([]float32, 16*c-1)
	for name, f := range map[string]func(){
		"pixels":         func() { WinogradInput(c, short, 4*c, c, long, c) },
		"their result":   func() { WinogradInput(c, long, 4*c, c, short, c) },
		"sums":           func() { WinogradOutput(c, short, c, long, 2*c, c, 0, 1) },
		"output pixels":  func() { WinogradOutput(c, long, c, short[:4*c-1], 2*c, c, 0, 1) },
		"taps":           func() { WinogradFilter(c, short[:9*c-1], long, c) },
		"filter, result": func() { WinogradFilter(c, long, short, c) },
	} {
		if recovered(f) == nil {
			t.Errorf("%s: no panic", name)
		}
	}
}
