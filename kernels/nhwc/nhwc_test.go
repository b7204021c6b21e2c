package nhwc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/window"
)

const tests = 2000

// randomImages returns images with windows over the last dims dimensions.
func randomImages(r *rand.Rand, dims int) (s Images) {
	one := [3]int{1, 1, 1}
	s.Shape = window.Shape{In: one, Out: one, Kernel: one, Stride: one, Dilate: one}
	s.C = 1 + r.IntN(20)
	for d := 3 - dims; d < 3; d++ {
		for s.Out[d] = 0; s.Out[d] < 1; s.Slide(d, false) {
			s.In[d], s.Kernel[d], s.Stride[d], s.Dilate[d] = 1+r.IntN(12), 1+r.IntN(5), 1+r.IntN(4), 1+r.IntN(3)
			s.Pad[d] = r.IntN(s.Kernel[d])
		}
	}
	return s
}

// each calls f for the elements of a window in one image: its tap, and the point that it reads, -1 for padding.
func (s *Images) each(at [3]int, f func(tap, point int)) {
	tap := 0
	for z := range s.Kernel[0] {
		for y := range s.Kernel[1] {
			for x := range s.Kernel[2] {
				point := 0
				for d, k := range [3]int{z, y, x} {
					i := at[d]*s.Stride[d] - s.Pad[d] + k*s.Dilate[d]
					if i < 0 || i >= s.In[d] || point < 0 {
						point = -1
						continue
					}
					point = point*s.In[d] + i
				}
				f(tap, point)
				tap++
			}
		}
	}
}

// outputs calls f for the points of all outputs.
func (s *Images) outputs(images int, f func(i, image int, at [3]int)) {
	for i := range images * window.Volume(s.Out) {
		f(i, i/window.Volume(s.Out), [3]int{i / s.Out[2] / s.Out[1] % s.Out[0], i / s.Out[2] % s.Out[1], i % s.Out[2]})
	}
}

type never struct{}

func (never) Poll() {}

func integers(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.IntN(201) - 100)
	}
	return x
}

func same(t *testing.T, what string, got, want []float32, s Images) {
	t.Helper()
	for i, v := range got {
		if math.Abs(float64(v-want[i])) > 1e-4 {
			t.Fatalf("%s of %+v: element %d is %v, want %v", what, s, i, v, want[i])
		}
	}
}

func TestPool(t *testing.T) {
	const least = -1000
	r := rand.New(rand.NewPCG(1, 2))
	byRow := 0
	var p Pool[float32] // plans follow each other
	for range tests {
		const images = 2
		p.Images, p.Mean, p.Adaptive = randomImages(r, 1+r.IntN(3)), r.IntN(2) == 0, false
		p.X, p.Y, p.Stop, p.Empty = integers(r, images*p.size()), make([]float32, images*window.Volume(p.Out)*p.C), never{}, least
		p.Plan(2)
		p.CountInside()
		want := make([]float32, len(p.Y))
		p.outputs(images, func(i, image int, at [3]int) {
			for c := range p.C {
				sum, most, n := float32(0), float32(least), 0
				p.each(at, func(_, point int) {
					if point >= 0 {
						v := p.X[image*p.size()+point*p.C+c]
						sum, most, n = sum+v, max(most, v), n+1
					}
				})
				if want[i*p.C+c] = most; p.Mean {
					want[i*p.C+c] = sum / float32(max(n, 1))
				}
			}
		})
		memory := make([]float32, p.Line())
		for i := range images * p.Out[0] * p.Out[1] {
			p.Run(i%2, memory, i)
		}
		if p.byRow {
			byRow++
		}
		same(t, fmt.Sprintf("mean: %v", p.Mean), p.Y, want, p.Images)
	}
	if byRow < tests/10 || byRow > tests*9/10 {
		t.Errorf("%d of %d pools combine lines first", byRow, tests)
	}
}

func TestAdaptivePool(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range tests / 4 {
		p := Pool[int64]{Mean: true, Adaptive: true, Stop: never{}}
		p.C, p.Dilate = 3, [3]int{1, 1, 1}
		for d := range 3 {
			p.In[d], p.Out[d] = 1+r.IntN(9), 1+r.IntN(9)
		}
		p.X, p.Y = make([]int64, p.size()), make([]int64, window.Volume(p.Out)*p.C)
		for i := range p.X {
			p.X[i] = int64(r.IntN(1000))
		}
		p.Plan(1)
		p.CountInside()
		for i := range p.Out[0] * p.Out[1] {
			p.Run(0, make([]int64, p.Line()), i)
		}
		p.outputs(1, func(i, _ int, at [3]int) {
			lo, hi, sum, n := [3]int{}, [3]int{}, int64(0), int64(0)
			for d := range 3 {
				lo[d], hi[d] = at[d]*p.In[d]/p.Out[d], ((at[d]+1)*p.In[d]+p.Out[d]-1)/p.Out[d]
			}
			for point := range window.Volume(p.In) {
				z, y, x := point/p.In[2]/p.In[1], point/p.In[2]%p.In[1], point%p.In[2]
				if z >= lo[0] && z < hi[0] && y >= lo[1] && y < hi[1] && x >= lo[2] && x < hi[2] {
					sum, n = sum+p.X[point*p.C], n+1
				}
			}
			if got := p.Y[i*p.C]; got != sum/n {
				t.Fatalf("%v in %v parts: part %v is %d, want %d", p.In, p.Out, at, got, sum/n)
			}
		})
	}
}

func TestDepthwise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var d Depthwise // plans follow each other
	for range tests {
		const images = 2
		d.Images, d.Min, d.Max = randomImages(r, 2), -2e5, 2e5
		d.X, d.Y = integers(r, images*d.size()), make([]float32, images*window.Volume(d.Out)*d.C)
		filter, bias := integers(r, d.taps()*d.C), integers(r, d.C)
		d.SetFilter(filter, bias)
		want := make([]float32, len(d.Y))
		d.outputs(images, func(i, image int, at [3]int) {
			for c := range d.C {
				sum := bias[c]
				d.each(at, func(tap, point int) {
					if point >= 0 {
						sum += filter[tap*d.C+c] * d.X[image*d.size()+point*d.C+c]
					}
				})
				want[i*d.C+c] = min(max(sum, d.Min), d.Max)
			}
		})
		d.Plan(2)
		if allocs := testing.AllocsPerRun(1, func() { d.Plan(2) }); allocs > 0 {
			t.Fatalf("%v allocations in the second Plan for the same geometry", allocs)
		}
		for i := range images * d.Out[1] {
			d.Run(i%2, i)
		}
		same(t, "depthwise", d.Y, want, d.Images)
	}
}

// TestRows compares rows, pieces of rows, and rows of the padded copy with windows element by element.
func TestRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var p Padded[float32]
	for range tests {
		const images, padding = 2, 5
		s := Rows[float32]{Images: randomImages(r, 2), Group: 1 + r.IntN(6)}
		groups := 1 + r.IntN(2)
		s.C = groups * s.Group
		s.X = integers(r, images*s.size())
		p.Plan(s.Images, images)
		staged := make([]float32, p.Numel())
		p.Copy(staged, s.X, func(int) float32 { return padding })
		offsets := p.Offsets(nil, false)
		k := s.Kernel[1] * s.Kernel[2] * s.Group
		row, want := make([]float32, k), make([]float32, k)
		s.outputs(images, func(i, image int, at [3]int) {
			group := r.IntN(groups)
			s.each(at, func(tap, point int) {
				for c := range s.Group {
					v := float32(padding)
					if point >= 0 {
						v = s.X[image*s.size()+point*s.C+group*s.Group+c]
					}
					want[tap*s.Group+c] = v
					if got := staged[p.Offset(image, at[1], at[2])+offsets[tap]+group*s.Group+c]; got != v {
						t.Fatalf("padded copy of %+v: tap %d of %v is %v, want %v", s.Images, tap, at, got, v)
					}
				}
			})
			s.Gather(row, group, i, 0, padding)
			same(t, "row", row, want, s.Images)
			from := r.IntN(k)
			to := from + 1 + r.IntN(k-from)
			s.Gather(row[:to-from], group, i, from, padding)
			same(t, "piece of a row", row[:to-from], want[from:to], s.Images)
		})
	}
}

// TestTransposedRows scatters points to the output in place of gathering rows.
func TestTransposedRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range tests {
		s := Rows[uint8]{Images: randomImages(r, 2), Group: 2, Transposed: true}
		s.C = 2
		for d := range s.Out {
			s.SlideBack(d, 0)
		}
		if s.Out[1] < 1 || s.Out[2] < 1 {
			continue
		}
		s.X = make([]uint8, s.size())
		for i := range s.X {
			s.X[i] = uint8(r.IntN(255))
		}
		k := s.Kernel[1] * s.Kernel[2] * s.Group
		want, row := make([]uint8, window.Volume(s.Out)*k), make([]uint8, k)
		fill(want, 255)
		for i := range s.In[1] * s.In[2] * s.Kernel[1] * s.Kernel[2] {
			point, tap := i%(s.In[1]*s.In[2]), i/(s.In[1]*s.In[2])
			y := point/s.In[2]*s.Stride[1] + tap/s.Kernel[2]*s.Dilate[1] - s.Pad[1]
			x := point%s.In[2]*s.Stride[2] + tap%s.Kernel[2]*s.Dilate[2] - s.Pad[2]
			if y >= 0 && y < s.Out[1] && x >= 0 && x < s.Out[2] {
				copy(want[(y*s.Out[2]+x)*k+tap*s.Group:][:s.Group], s.X[point*s.C:])
			}
		}
		for i := range window.Volume(s.Out) {
			s.Gather(row, 0, i, 0, 255)
			if string(row) != string(want[i*k:][:k]) {
				t.Fatalf("%+v: row %d is %v, want %v", s.Images, i, row, want[i*k:][:k])
			}
		}
	}
}
