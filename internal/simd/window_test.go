package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// shifted is a call of a window kernel: taps of rows of n results.
type shifted struct {
	x           guarded
	off         []int
	tag         []int32
	rows, n     int
	ys, xs, end int // end is the length of y
}

func newShifted(r *rand.Rand, rows, n, taps int) *shifted {
	s := &shifted{rows: rows, n: n, ys: n + r.IntN(3), xs: n + r.IntN(9)}
	s.end = (rows-1)*s.ys + n
	for t := range taps {
		s.off = append(s.off, r.IntN(50))
		s.tag = append(s.tag, int32(t*7))
	}
	s.x = newGuarded(r, 50+(rows-1)*s.xs+n)
	for i := range s.x.data {
		switch r.IntN(20) {
		case 0:
			s.x.data[i] = float32(math.NaN())
		case 1, 2, 3, 4:
			s.x.data[i] = 0.5 // equal ones
		}
	}
	return s
}

// eachShifted calls f for rows of every length around the block sizes.
func eachShifted(f func(name string, r *rand.Rand, s *shifted)) {
	r := rand.New(rand.NewPCG(11, 12))
	for n := 1; n <= 75; n++ {
		for _, rows := range []int{1, 3} {
			for _, taps := range []int{1, 2, 5, 9} {
				f(fmt.Sprintf("n=%d rows=%d taps=%d", n, rows, taps), r, newShifted(r, rows, n, taps))
			}
		}
	}
}

func same(a, b float32) bool { return a == b || a != a && b != b }

// TestInterpolate compares rows between points with the formula, and wants a panic for an index outside.
func TestInterpolate(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, in := range []int{1, 2, 7, 16, 31, 33, 100} {
		for n := range 70 {
			x, weight, got := operands(r, in), make([]float32, n), make([]float32, n)
			first, second := make([]int32, n), make([]int32, n)
			for i := range first {
				first[i], weight[i] = int32(i*in/n), r.Float32()
				second[i] = int32(min(int(first[i])+r.IntN(3), in-1))
			}
			Interpolate(got, x, first, second, weight)
			for i, w := range weight {
				want := float32((1-w)*x[first[i]]) + float32(w*x[second[i]])
				if !sameFloat("", got[i], want) {
					t.Fatalf("element %d of %d, of %d points: got %v, want %v", i, n, in, got[i], want)
				}
			}
			for _, index := range []int32{-1, int32(in), math.MinInt32, math.MaxInt32} {
				if n == 0 {
					break
				}
				at := r.IntN(n)
				for _, list := range [][]int32{first, second} {
					was := list[at]
					list[at] = index
					if recovered(func() { Interpolate(got, x, first, second, weight) }) == nil {
						t.Fatalf("index %d of %d, of %d points: no panic", index, at, in)
					}
					list[at] = was
				}
			}
		}
	}
}

func TestExtremeTaps(t *testing.T) {
	for _, least := range []bool{false, true} {
		eachShifted(func(name string, r *rand.Rand, s *shifted) {
			y, at, want, wantAt := newGuarded(r, s.end), make([]int32, s.end), make([]float32, s.end), make([]int32, s.end)
			copy(want, y.data)
			ExtremeTaps(y.data, at, s.x.data, s.off, s.tag, s.rows, s.n, s.ys, s.xs, least)
			extremeTapsGo(want, wantAt, s.x.data, s.off, s.tag, s.rows, s.n, s.ys, s.xs, least)
			y.check(t, name)
			for i, v := range want {
				if at[i] != wantAt[i] || !same(y.data[i], v) {
					t.Fatalf("%s, least %v: element %d: got %v from %d, want %v from %d", name, least, i, y.data[i], at[i], v, wantAt[i])
				}
			}
		})
	}
}

func TestSumTaps(t *testing.T) { checkTaps(t, SumTaps[float32], sumTapsGo[float32]) }

func TestMaxTaps(t *testing.T) { checkTaps(t, MaxTaps[float32], maxTapsGo[float32]) }

func checkTaps(t *testing.T, f, pure func(y, x []float32, off []int, rows, n, ys, xs int)) {
	eachShifted(func(name string, r *rand.Rand, s *shifted) {
		y, want := newGuarded(r, s.end), make([]float32, s.end)
		copy(want, y.data)
		f(y.data, s.x.data, s.off, s.rows, s.n, s.ys, s.xs)
		pure(want, s.x.data, s.off, s.rows, s.n, s.ys, s.xs)
		checkRows(t, name, y, want)
	})
}

// TestSumRows compares with sums of each row in float64; what is before the first row and behind the last one is NaN.
func TestSumRows(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 3))
	for i, rows := range []int{0, 1, 3, 4, 5, 8, 12, 31} {
		for _, n := range []int{0, 1, 4, 7, 8, 9, 15, 16, 17, 31, 49, 64, 196, 255, 256} {
			whole, got := make([]float32, i+rows*n+1), make([]float32, rows)
			for i := range whole {
				whole[i] = float32(math.NaN())
			}
			x := whole[i:][:rows*n]
			for i := range x {
				x[i] = r.Float32()*2 - 1
			}
			for i := range got {
				got[i] = 7
			}
			SumRows(got, x, n)
			checkSums(t, got, x, n)
		}
	}
	x := []float32{1, 2, 3, float32(math.NaN()), 5, 6, 7, 8, float32(math.Inf(1))}
	got := make([]float32, 1)
	if SumRows(got, x, 9); got[0] == got[0] {
		t.Errorf("got %v for a row with NaN", got[0])
	}
}

// TestSumHalfRows compares with sums of each row in float64; what follows the last row is NaN.
func TestSumHalfRows(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 3))
	for _, rows := range []int{1, 3, 4, 5, 12, 31} {
		for _, n := range []int{1, 7, 8, 9, 15, 16, 31, 49, 64, 255} {
			total := rows * n
			x, wide, got := make([]byte, 2*total+16), make([]float32, (total+7)&^7), make([]float32, rows)
			for i := range wide {
				wide[i] = float32(math.NaN())
				if i < total {
					wide[i] = r.Float32()*2 - 1
				}
			}
			FloatToHalf(x, wide)
			HalfToFloat(wide, x)
			done := SumHalfRows(got, x[:2*total], n)
			if want := avx2() && rows >= 4 && n >= 8; done != want {
				t.Fatalf("%d rows of %d: got %v, want %v", rows, n, done, want)
			}
			if done {
				checkSums(t, got, wide, n)
			}
		}
	}
}

func checkSums(t *testing.T, got, x []float32, n int) {
	t.Helper()
	for i, v := range got {
		want := 0.0
		for _, e := range x[i*n:][:n] {
			want += float64(e)
		}
		if math.Abs(float64(v)-want) > 1e-7*float64(n+1) {
			t.Errorf("%d rows of %d, row %d: got %v, want %v", len(got), n, i, v, want)
		}
	}
}

// TestPairsOfRows compares every second element, and elements in turn, with plain loops.
func TestPairsOfRows(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 4))
	for n := range 70 {
		for _, rows := range []int{1, 3} {
			ds, ss := 2*n+r.IntN(3), 2*n+r.IntN(5)
			x := newGuarded(r, rows*ss+1)
			if n > 0 {
				x = newGuarded(r, (rows-1)*ss+2*n-1) // the last odd element is not there
			}
			y, want := newGuarded(r, rows*ds), make([]float32, rows*ds)
			copy(want, y.data)
			Stride2Rows(y.data, x.data, rows, n, ds, ss)
			for i := range rows * n {
				want[i/n*ds+i%n] = x.data[i/n*ss+2*(i%n)]
			}
			checkRows(t, fmt.Sprintf("stride 2: n=%d rows=%d", n, rows), y, want)
			a, b := newGuarded(r, rows*ss), newGuarded(r, rows*ss)
			Zip2Rows(y.data, a.data, b.data, rows, n, ds, ss)
			for i := range rows * n {
				to := want[i/n*ds+2*(i%n):]
				to[0], to[1] = a.data[i/n*ss+i%n], b.data[i/n*ss+i%n]
			}
			checkRows(t, fmt.Sprintf("zip 2: n=%d rows=%d", n, rows), y, want)
		}
	}
}

// TestThreesOfRows compares three rows that are put together and taken apart with plain loops.
func TestThreesOfRows(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 5))
	for n := range 70 {
		var rows [3]guarded
		for i := range rows {
			rows[i] = newGuarded(r, n)
		}
		y, want := newGuarded(r, 3*n), make([]float32, 3*n)
		for i := range want {
			want[i] = rows[i%3].data[i/3]
		}
		Zip3(y.data, rows[0].data, rows[1].data, rows[2].data)
		checkRows(t, fmt.Sprintf("zip 3: n=%d", n), y, want)
		x := newGuarded(r, 3*n)
		Unzip3(rows[0].data, rows[1].data, rows[2].data, x.data)
		for k, row := range rows {
			want := make([]float32, n)
			for i := range want {
				want[i] = x.data[3*i+k]
			}
			checkRows(t, fmt.Sprintf("unzip 3: n=%d, row %d", n, k), row, want)
		}
	}
}

func checkRows(t *testing.T, name string, y guarded, want []float32) {
	t.Helper()
	y.check(t, name)
	for i, v := range want {
		if !same(y.data[i], v) {
			t.Fatalf("%s: element %d: got %v, want %v, off by %g", name, i, y.data[i], v, y.data[i]-v)
		}
	}
}

func TestPlaces(t *testing.T) {
	for n := range 40 {
		got, at := make([]int64, n+1), make([]int32, n)
		for i := range at {
			at[i] = int32(i*i - 7)
		}
		got[n] = 99
		Places(got[:n], at, -5, 3)
		for i, v := range got[:n] {
			if want := int64(i*i - 7 - 5 + 3*i); v != want {
				t.Fatalf("%d places: place %d: got %d, want %d", n, i, v, want)
			}
		}
		if got[n] != 99 {
			t.Fatalf("%d places: the element behind them is %d", n, got[n])
		}
	}
}
