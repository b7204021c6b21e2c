package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestMulAddClamp(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 2))
	for range 2000 {
		m, n, k := 1+r.IntN(20), 1+r.IntN(70), r.IntN(40)
		lda, ldb, ldc := k+r.IntN(3), n+r.IntN(5), n+r.IntN(5)
		a, b := newGuarded(r, max(0, (m-1)*lda+k)), newGuarded(r, max(0, (k-1)*ldb+n))
		from, c := newGuarded(r, n), newGuarded(r, (m-1)*ldc+n)
		want := append([]float32(nil), c.data...)
		mulAddClampGo(m, n, k, a.data, lda, 1, b.data, ldb, from.data, 0, want, ldc, 0.1, 0.4)
		mulAddClamp(m, n, k, a.data, lda, 1, b.data, ldb, from.data, 0, c.data, ldc, 0.1, 0.4, 0)
		name := fmt.Sprintf("m=%d n=%d k=%d", m, n, k)
		near(t, name, c.data, want, k)
		c.check(t, name)
	}
}

func TestRowPanels(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 2))
	for panels := 1; panels < 12; panels++ {
		for _, k := range []int{1, 2, 7, 40} {
			panel, n := k*PanelCols+r.IntN(40), panels*PanelCols
			a, b := newGuarded(r, k), newGuarded(r, (panels-1)*panel+k*PanelCols)
			from, c := newGuarded(r, n), newGuarded(r, n)
			want := append([]float32(nil), c.data...)
			name := fmt.Sprintf("%d panels, k=%d", panels, k)
			done := RowPanels(panels, k, a.data, b.data, panel, from.data, c.data, 0.1, 3)
			for q := range done {
				at := q * PanelCols
				mulAddClampGo(1, PanelCols, k, a.data, k, 1, b.data[q*panel:], PanelCols, from.data[at:], 0, want[at:], PanelCols, 0.1, 3)
			}
			near(t, name, c.data, want, k)
			c.check(t, name)
		}
	}
}

func TestChannelTaps(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 2))
	for range 2000 {
		rows, n, taps := 1+r.IntN(11), 1+r.IntN(80), r.IntN(12)
		ys, xs := n+r.IntN(5), n+r.IntN(5)
		w, bias := newGuarded(r, 20+n), newGuarded(r, n)
		x, y := newGuarded(r, 30+(rows-1)*xs+n), newGuarded(r, (rows-1)*ys+n)
		xo, wo := make([]int, taps), make([]int, taps)
		for i := range xo {
			xo[i], wo[i] = r.IntN(31), r.IntN(21)
		}
		want := append([]float32(nil), y.data...)
		channelTapsGo(want, x.data, w.data, bias.data, xo, wo, rows, 0, n, ys, xs, 0.1, 2)
		ChannelTaps(y.data, x.data, w.data, bias.data, xo, wo, rows, n, ys, xs, 0.1, 2)
		name := fmt.Sprintf("rows=%d n=%d taps=%d", rows, n, taps)
		near(t, name, y.data, want, taps)
		y.check(t, name)
	}
}

// TestNarrowChannelTaps is of fewer channels than vectors have lanes, with weights and bias of at least as many elements.
func TestNarrowChannelTaps(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 2))
	for range 4000 {
		rows, n, taps := 1+r.IntN(30), 1+r.IntN(ChannelLanes), 1+r.IntN(12)
		ys, xs := n+r.IntN(8)/7, 1+r.IntN(3*n)
		w, bias := newGuarded(r, 20+n+r.IntN(ChannelLanes+1)), newGuarded(r, n+r.IntN(ChannelLanes+1))
		x, y := newGuarded(r, 30+(rows-1)*xs+n+r.IntN(3)*r.IntN(9)), newGuarded(r, (rows-1)*ys+n)
		xo, wo := make([]int, taps), make([]int, taps)
		for i := range xo {
			xo[i], wo[i] = r.IntN(31), r.IntN(21)
		}
		want := append([]float32(nil), y.data...)
		channelTapsGo(want, x.data, w.data, bias.data, xo, wo, rows, 0, n, ys, xs, 0.1, 2)
		ChannelTaps(y.data, x.data, w.data, bias.data, xo, wo, rows, n, ys, xs, 0.1, 2)
		name := fmt.Sprintf("rows=%d n=%d taps=%d ys=%d xs=%d", rows, n, taps, ys, xs)
		near(t, name, y.data, want, taps)
		y.check(t, name)
	}
}
