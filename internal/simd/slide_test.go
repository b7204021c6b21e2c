package simd

import (
	"fmt"
	"math"
	mathbits "math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// sliding is windows that reach over both edges, over one or over none, with NaN, infinities and equal elements; the last
// row of the last plane ends where x does.
type sliding struct {
	Windows
	SlideRows
	name string
	x    []float32
	end  int // the length of y
}

func newSliding(r *rand.Rand, w Windows) *sliding {
	s := &sliding{Windows: w, SlideRows: SlideRows{Rows: 1 + r.IntN(4), Planes: 1 + r.IntN(6), XS: w.Width + r.IntN(9), YS: w.N + r.IntN(3)}}
	s.Off = make([]int, 1+r.IntN(4))
	for t := range s.Off {
		s.Off[t] = r.IntN(50)
	}
	s.Off[len(s.Off)-1] = 50
	slices.Sort(s.Off)
	s.YP, s.XP = s.Rows*s.YS+r.IntN(3), 50+s.Rows*s.XS+r.IntN(5)
	s.end = (s.Planes-1)*s.YP + (s.Rows-1)*s.YS + w.N
	s.x = newGuarded(r, 50+(s.Planes-1)*s.XP+(s.Rows-1)*s.XS+max(columnsRead(w, SlideFloat32), columnsRead(w, SlideInt8))).data
	for i := range s.x {
		if v := r.IntN(60); v < 4 {
			s.x[i] = []float32{float32(math.NaN()), inf, inf, -inf}[v]
		} else if v < 25 {
			s.x[i] = float32(v%3) - 1
		}
	}
	s.name = fmt.Sprintf("%+v rows=%d planes=%d taps=%d", w, s.Rows, s.Planes, len(s.Off))
	return s
}

// columnsRead returns the number of columns of a row that the vector loop of windows reads, which its masks tell, or that
// the last window wants.
func columnsRead(w Windows, e SlideElement) int {
	var f Slider
	_, end := w.window(w.N - 1)
	f.Plan(w, e)
	for _, b := range f.blocks {
		end = max(end, b.From+mathbits.Len64(uint64(b.Masks[1])<<e.lanes()|uint64(b.Masks[0])))
	}
	return end
}

func eachSliding(f func(r *rand.Rand, s *sliding)) {
	r := rand.New(rand.NewPCG(51, 6))
	for stride := 1; stride <= 9; stride++ {
		for kernel := 1; kernel <= 9; kernel++ {
			for _, width := range []int{1, 2, 5, 7, 14, 16, 17, 31, 33, 50, 64, 97, 130} {
				pad := r.IntN(kernel/2 + 1)
				n := (width+2*pad-kernel+r.IntN(stride))/stride + 1
				if n < 1 || (n-1)*stride-pad >= width {
					continue
				}
				f(r, newSliding(r, Windows{n, kernel, stride, width, pad}))
			}
		}
	}
}

// bytesOfFloats views float32 as bytes.
func bytesOfFloats(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

func TestSliderMax(t *testing.T) {
	var f Slider
	eachSliding(func(r *rand.Rand, s *sliding) {
		y, want := newGuarded(r, s.end), make([]float32, s.end)
		copy(want, y.data)
		f.Plan(s.Windows, SlideFloat32)
		f.Max(bytesOfFloats(y.data), bytesOfFloats(s.x), &s.SlideRows)
		f.maxGo(want, nil, s.x, &s.SlideRows)
		checkRows(t, s.name, y, want)
	})
}

func TestSliderMaxPlaces(t *testing.T) {
	var f Slider
	eachSliding(func(r *rand.Rand, s *sliding) {
		if r.IntN(3) == 0 { // no more than what lies outside
			for i := range s.x {
				s.x[i] = -inf
			}
		}
		y, at, want, wantAt := newGuarded(r, s.end), make([]int64, s.end), make([]float32, s.end), make([]int64, s.end)
		copy(want, y.data)
		f.Plan(s.Windows, SlideFloat32)
		f.MaxPlaces(bytesOfFloats(y.data), at, bytesOfFloats(s.x), &s.SlideRows)
		f.maxGo(want, wantAt, s.x, &s.SlideRows)
		checkRows(t, s.name, y, want)
		for i, v := range wantAt {
			if at[i] != v {
				t.Fatalf("%s: element %d, %v: got place %d, want %d", s.name, i, want[i], at[i], v)
			}
		}
	})
}

func TestSliderSum(t *testing.T) {
	var f Slider
	eachSliding(func(r *rand.Rand, s *sliding) {
		y, want, scale := newGuarded(r, s.end), make([]float32, s.end), operands(r, s.N)
		copy(want, y.data)
		f.Plan(s.Windows, SlideFloat32)
		f.Sum(bytesOfFloats(y.data), bytesOfFloats(s.x), &s.SlideRows, scale)
		f.sumGo(want, s.x, &s.SlideRows, scale)
		y.check(t, s.name)
		for i, v := range want {
			bound := 1e-6 * float64(len(s.Off)*s.Kernel) * max(1, math.Abs(float64(v)))
			if got := y.data[i]; !same(got, v) && !(math.Abs(float64(got-v)) <= bound) {
				t.Fatalf("%s: element %d: got %v, want %v", s.name, i, got, v)
			}
		}
	})
}

// TestSliderNarrow compares maxima and means of narrow elements with those of the same numbers in float32.
func TestSliderNarrow(t *testing.T) {
	var f, wide Slider
	for e, c := range map[SlideElement]struct {
		widen  func(dst []float32, src []byte) int
		narrow func(dst []byte, src []float32) int
	}{SlideFloat16: {HalfToFloat, FloatToHalf}, SlideInt8: {Int8ToFloat, FloatTo8}, SlideUint8: {Uint8ToFloat, FloatTo8}} {
		eachSliding(func(r *rand.Rand, s *sliding) {
			planned, got := wide.Plan(s.Windows, SlideFloat32) && avx512, f.Plan(s.Windows, e)
			if further := avx512 && e.words(); got != planned && !(further && got) { // more lanes reach windows further apart
				t.Fatalf("%s: type %d: got plan %v, want %v", s.name, e, got, planned)
			}
			if !got {
				return
			}
			size, n := slideSizes[e], (len(s.x)+63)&^63
			x, y, floats, scale := make([]byte, n*size), make([]byte, 64+s.end*size), make([]float32, n), operands(r, s.N)
			for i := range x {
				x[i] = byte(r.IntN(256))
			}
			for i := range y {
				y[i] = 77
			}
			if c.widen(floats, x) != n {
				t.Fatal("not all elements are converted")
			}
			check := func(op string, want []float32) {
				t.Helper()
				bytes, m := make([]byte, (s.end+63)/64*64*size), (s.end+63)&^63
				c.narrow(bytes, append(want, make([]float32, m-s.end)...))
				s.eachResult(func(i int) {
					for k := i * size; k < (i+1)*size; k++ {
						if y[k] != bytes[k] {
							t.Fatalf("%s of type %d, %s: byte %d of element %d: got %#x, want %#x of %v", op, e, s.name, k%size, i, y[k], bytes[k], want[i])
						}
						y[k] = 77
					}
				})
				for i, v := range y {
					if v != 77 {
						t.Fatalf("%s of type %d, %s: byte %d is written", op, e, s.name, i)
					}
				}
			}
			want := make([]float32, s.end)
			f.Max(y[:s.end*size], x[:len(s.x)*size], &s.SlideRows)
			wide.Max(bytesOfFloats(want), bytesOfFloats(floats), &s.SlideRows)
			check("max", want)
			if e == SlideFloat16 {
				f.Sum(y[:s.end*size], x[:len(s.x)*size], &s.SlideRows, scale)
				wide.Sum(bytesOfFloats(want), bytesOfFloats(floats), &s.SlideRows, scale)
				check("sum", want)
			}
		})
	}
}

// eachResult calls f for the index of every result.
func (s *sliding) eachResult(f func(i int)) {
	for p := range s.Planes {
		for i := range s.Rows {
			for j := range s.N {
				f(p*s.YP + i*s.YS + j)
			}
		}
	}
}

func TestSliderShort(t *testing.T) {
	w, x, y, scale := Windows{5, 3, 2, 9, 1}, make([]float32, 62), make([]float32, 28), make([]float32, 5)
	r := &SlideRows{Off: []int{0, 11}, Rows: 2, Planes: 2, YS: 9, XS: 11, YP: 14, XP: 31}
	var s Slider
	s.Plan(w, SlideFloat32)
	for name, f := range map[string]func(){
		"x":      func() { s.Max(bytesOfFloats(y), bytesOfFloats(x[:61:62]), r) },
		"y":      func() { s.Max(bytesOfFloats(y[:27:28]), bytesOfFloats(x), r) },
		"places": func() { s.MaxPlaces(bytesOfFloats(y), make([]int64, 27, 28), bytesOfFloats(x), r) },
		"scale":  func() { s.Sum(bytesOfFloats(y), bytesOfFloats(x), r, scale[:4:5]) },
	} {
		if recovered(f) == nil {
			t.Errorf("%s one element short: no panic", name)
		}
	}
	if reason := recovered(func() { s.Sum(bytesOfFloats(y), bytesOfFloats(x), r, scale) }); reason != nil {
		t.Errorf("long enough: %v", reason)
	}
}

// TestSliderReads checks that x may end where the vector loops stop reading, and not before.
func TestSliderReads(t *testing.T) {
	further := false
	for _, w := range []Windows{
		{17, 2, 1, 64, 0}, {17, 2, 1, 20, 0}, {9, 3, 1, 40, 1}, {40, 3, 2, 100, 1}, {33, 8, 1, 40, 0}, {5, 3, 2, 9, 1},
	} {
		var s Slider
		s.Plan(w, SlideFloat32)
		end, y := columnsRead(w, SlideFloat32), make([]float32, w.N)
		_, last := w.window(w.N - 1)
		further = further || end > last
		x, r := make([]float32, end), &SlideRows{Off: []int{0}, Rows: 1, Planes: 1}
		for short := range 2 {
			reason := recovered(func() { s.Max(bytesOfFloats(y), bytesOfFloats(x[:end-short]), r) })
			if (reason != nil) != (short > 0) {
				t.Errorf("%+v: x of %d columns, %d are read: panic %v", w, end-short, end, reason)
			}
		}
	}
	if further != (SlideFloat32.lanes() > 0) {
		t.Errorf("loops of %d lanes read further than the last window: %v", SlideFloat32.lanes(), further)
	}
}

// TestSliderOnePlane checks the places of maxima in rows of one plane, with and without a distance of planes.
func TestSliderOnePlane(t *testing.T) {
	w, x := Windows{6, 2, 1, 7, 0}, []float32{1, 5, 2, 8, 3, 9, 4, 7, 6, 3, 2, 1, 8, 5}
	want := []int64{1, 1, 3, 3, 5, 5, 7, 8, 9, 10, 12, 12}
	for _, distance := range []int{0, 3, 14} {
		r := &SlideRows{Off: []int{0}, Rows: 2, Planes: 1, YS: 6, XS: 7, YP: distance, XP: distance}
		var s Slider
		s.Plan(w, SlideFloat32)
		for name, f := range map[string]func(y []float32, at []int64){
			"MaxPlaces": func(y []float32, at []int64) { s.MaxPlaces(bytesOfFloats(y), at, bytesOfFloats(x), r) },
			"maxGo":     func(y []float32, at []int64) { s.maxGo(y, at, x, r) },
		} {
			at := make([]int64, 12)
			if f(make([]float32, 12), at); !slices.Equal(at, want) {
				t.Errorf("%s, planes %d apart: got places %v, want %v", name, distance, at, want)
			}
		}
	}
}

func BenchmarkSlider(b *testing.B) {
	for stride := 1; stride <= 4; stride++ {
		for _, n := range benchmarkLengths {
			width, kernel := n*stride, min(stride+1, 4)
			var s Slider
			if !s.Plan(Windows{n, kernel, stride, width, 1}, SlideFloat32) {
				b.Skip("no loop at this level")
			}
			r := &SlideRows{Off: []int{0, width, 2 * width}, Rows: 2, Planes: 1, YS: n, XS: width, YP: 2 * n, XP: 6 * width}
			x, y, w, at := make([]float32, 6*width), make([]float32, 2*n), make([]float32, n), make([]int64, 2*n)
			xs, ys := bytesOfFloats(x), bytesOfFloats(y)
			name := fmt.Sprintf("stride %d", stride)
			versus(b, named("Max/"+name, n), 2*n*3*kernel, func() { s.Max(ys, xs, r) }, func() { s.maxGo(y, nil, x, r) })
			versus(b, named("MaxPlaces/"+name, n), 2*n*3*kernel, func() { s.MaxPlaces(ys, at, xs, r) }, func() { s.maxGo(y, at, x, r) })
			versus(b, named("Sum/"+name, n), 2*n*3*kernel, func() { s.Sum(ys, xs, r, w) }, func() { s.sumGo(y, x, r, w) })
		}
	}
}
