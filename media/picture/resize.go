package picture

import "math"

// Pixels is a decoded image: H rows of W pixels of C interleaved 8-bit channels.
type Pixels struct {
	H, W, C int
	Data    []byte
}

// Filter is how an image is resized.
type Filter int

// Filters.
const (
	Bilinear Filter = iota
	Nearest
	Lanczos
	Bicubic
	Box
	Hamming
)

// filters is the table of filters: half the width in samples of the larger side, and the weight at a distance.
var filters = [...]struct {
	name   string
	radius float64
	weight func(x float64) float64
}{
	Bilinear: {"bilinear", 1, func(x float64) float64 { return max(0, 1-math.Abs(x)) }},
	Nearest:  {name: "nearest"},
	Lanczos:  {"lanczos", 3, func(x float64) float64 { return sinc(x) * sinc(x/3) }},
	Bicubic:  {"bicubic", 2, cubic},
	Box:      {"box", 0.5, box},
	Hamming:  {"hamming", 1, hamming},
}

// pillow has Pillow's filters by its numbers.
var pillow = [...]Filter{Nearest, Lanczos, Bilinear, Bicubic, Box, Hamming}

// FilterNamed returns the filter of a name, such as "bicubic".
func FilterNamed(name string) (f Filter, ok bool) {
	for i := range filters {
		if filters[i].name == name {
			return Filter(i), true
		}
	}
	return 0, false
}

// PillowFilter returns the filter of one of Pillow's numbers, as the member resample of preprocessor_config.json has it.
func PillowFilter(n int) (f Filter, ok bool) {
	if n < 0 || n >= len(pillow) {
		return 0, false
	}
	return pillow[n], true
}

// String returns the name of the filter.
func (f Filter) String() string { return filters[f].name }

// Explicit conversions prevent the fusion with the following operation, which Pillow's weights do not have.

func sinc(x float64) float64 {
	switch {
	case x == 0:
		return 1
	case math.Abs(x) >= 3:
		return 0
	}
	x *= math.Pi
	return math.Sin(x) / x
}

// cubic is Keys' function with a = -0.5.
func cubic(x float64) float64 {
	const a = -0.5
	switch x = math.Abs(x); {
	case x < 1:
		return float64(float64(float64(float64((a+2)*x)-(a+3))*x)*x) + 1
	case x < 2:
		return (float64((float64((x-5)*x)+8)*x) - 4) * a
	}
	return 0
}

func box(x float64) float64 {
	if x > -0.5 && x <= 0.5 {
		return 1
	}
	return 0
}

func hamming(x float64) float64 {
	switch x = math.Abs(x); {
	case x == 0:
		return 1
	case x >= 1:
		return 0
	}
	x *= math.Pi
	return math.Sin(x) / x * (0.54 + float64(0.46*math.Cos(x)))
}

// Resize scales p to h by w with a filter that covers the source samples of each output sample, bit for bit like Pillow and so like
// torchvision's and Hugging Face's pipelines: first along the rows, then along the columns, with 22-bit fixed-point weights, and rounded
// to bytes after each pass. Nearest copies one sample.
func (p Pixels) Resize(h, w int, f Filter) Pixels {
	if f == Nearest {
		return p.pick(h, w)
	}
	if w != p.W {
		p = p.resizeRows(w, f)
	}
	if h != p.H {
		p = p.resizeColumns(h, f)
	}
	return p
}

// pick returns the nearest source pixels.
func (p Pixels) pick(h, w int) Pixels {
	if h == p.H && w == p.W {
		return p
	}
	out := Pixels{h, w, p.C, make([]byte, h*w*p.C)}
	columns, rows := nearestOf(p.W, w), nearestOf(p.H, h)
	for y, from := range rows {
		for x, at := range columns {
			copy(out.Data[(y*w+x)*p.C:][:p.C], p.Data[(from*p.W+at)*p.C:])
		}
	}
	return out
}

// nearestOf returns the source samples of all output samples along one axis, whose positions Pillow adds up.
func nearestOf(from, to int) []int {
	step := float64(from) / float64(to)
	list := make([]int, to)
	at := step * 0.5
	for i := range list {
		list[i] = min(int(at), from-1)
		at += step
	}
	return list
}

// weightBits is the precision of a weight; 255 times the sum of all weights fits an int32.
const weightBits = 22

// taps are the source samples of one output sample.
type taps struct {
	first   int
	weights []int32
}

// tapsOf computes the taps of all output samples along one axis.
func tapsOf(from, to int, f Filter) []taps {
	scale := float64(from) / float64(to)
	stretch := max(scale, 1) // of the filter, in source samples
	support := float64(filters[f].radius * stretch)
	all := make([]taps, to)
	for i := range all {
		center := float64((float64(i) + 0.5) * scale)
		first := max(int(center-support+0.5), 0)
		last := min(int(center+support+0.5), from)
		all[i] = taps{first, fixedWeights(first, last, center, stretch, filters[f].weight)}
	}
	return all
}

func fixedWeights(first, last int, center, stretch float64, weight func(float64) float64) []int32 {
	weights := make([]float64, last-first)
	sum, narrow := 0.0, 1/stretch
	for x := range weights {
		weights[x] = weight((float64(x+first) - center + 0.5) * narrow)
		sum += weights[x]
	}
	fixed := make([]int32, len(weights))
	for x, v := range weights {
		fixed[x] = int32(float64(v/sum*(1<<weightBits)) + math.Copysign(0.5, v/sum))
	}
	return fixed
}

// sample applies one output sample's taps to source bytes at intervals of stride.
func (t taps) sample(src []byte, stride int) byte {
	sum := int32(1) << (weightBits - 1)
	at := t.first * stride
	for _, w := range t.weights {
		sum += int32(src[at]) * w
		at += stride
	}
	return byte(min(max(sum>>weightBits, 0), 255))
}

func (p Pixels) resizeRows(w int, f Filter) Pixels {
	out := Pixels{p.H, w, p.C, make([]byte, p.H*w*p.C)}
	all := tapsOf(p.W, w, f)
	for y := range p.H {
		row := p.Data[y*p.W*p.C : (y+1)*p.W*p.C]
		for x, t := range all {
			for c := range p.C {
				out.Data[(y*w+x)*p.C+c] = t.sample(row[c:], p.C)
			}
		}
	}
	return out
}

func (p Pixels) resizeColumns(h int, f Filter) Pixels {
	stride := p.W * p.C
	out := Pixels{h, p.W, p.C, make([]byte, h*stride)}
	for y, t := range tapsOf(p.H, h, f) {
		for x := range stride {
			out.Data[y*stride+x] = t.sample(p.Data[x:], stride)
		}
	}
	return out
}

// crop returns the center h by w pixels, rounded like torchvision's CenterCrop. The image
// is at least that large.
func (p Pixels) crop(h, w int) Pixels {
	if h == p.H && w == p.W {
		return p
	}
	top, left := cropped(p.H, h), cropped(p.W, w)
	out := Pixels{h, w, p.C, make([]byte, 0, h*w*p.C)}
	for y := range h {
		row := ((top+y)*p.W + left) * p.C
		out.Data = append(out.Data, p.Data[row:row+w*p.C]...)
	}
	return out
}

// pad returns h by w pixels with p at a place, on a background of one byte of all channels. The image is at most that large.
func (p Pixels) pad(h, w, top, left int, background byte) Pixels {
	if h == p.H && w == p.W {
		return p
	}
	out := Pixels{h, w, p.C, make([]byte, h*w*p.C)}
	for i := range out.Data {
		out.Data[i] = background
	}
	for y := range p.H {
		copy(out.Data[((top+y)*w+left)*p.C:], p.Data[y*p.W*p.C:(y+1)*p.W*p.C])
	}
	return out
}
