package picture

import "math"

// Pixels is a decoded image: H rows of W pixels of C interleaved 8-bit channels.
type Pixels struct {
	H, W, C int
	Data    []byte
}

// Resize scales p to h by w with an antialiasing bilinear filter, bit for bit like Pillow
// and torchvision: first along the rows, then along the columns, with 22-bit fixed-point
// weights, and rounded to bytes after each pass.
func (p Pixels) Resize(h, w int) Pixels {
	if w != p.W {
		p = p.resizeRows(w)
	}
	if h != p.H {
		p = p.resizeColumns(h)
	}
	return p
}

// weightBits is the precision of a weight; 255 times the sum of all weights fits an int32.
const weightBits = 22

// taps are the source samples of one output sample.
type taps struct {
	first   int
	weights []int32
}

// triangle computes the taps of all output samples along one axis.
func triangle(from, to int) []taps {
	scale := float64(from) / float64(to)
	support := max(scale, 1) // filter support in source samples
	all := make([]taps, to)
	for i := range all {
		center := float64((float64(i) + 0.5) * scale) // explicit conversion prevents fusing with the following operation
		first := max(int(center-support+0.5), 0)
		last := min(int(center+support+0.5), from)
		all[i] = taps{first, fixedWeights(first, last, center, support)}
	}
	return all
}

func fixedWeights(first, last int, center, support float64) []int32 {
	weights := make([]float64, last-first)
	sum, narrow := 0.0, 1/support
	for x := range weights {
		weights[x] = max(0, 1-math.Abs((float64(x+first)-center+0.5)*narrow))
		sum += weights[x]
	}
	fixed := make([]int32, len(weights))
	for x, v := range weights {
		fixed[x] = int32(v/sum*(1<<weightBits) + 0.5)
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

func (p Pixels) resizeRows(w int) Pixels {
	out := Pixels{p.H, w, p.C, make([]byte, p.H*w*p.C)}
	all := triangle(p.W, w)
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

func (p Pixels) resizeColumns(h int) Pixels {
	stride := p.W * p.C
	out := Pixels{h, p.W, p.C, make([]byte, h*stride)}
	for y, t := range triangle(p.H, h) {
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
	top := int(math.RoundToEven(float64(p.H-h) / 2))
	left := int(math.RoundToEven(float64(p.W-w) / 2))
	out := Pixels{h, w, p.C, make([]byte, 0, h*w*p.C)}
	for y := range h {
		row := ((top+y)*p.W + left) * p.C
		out.Data = append(out.Data, p.Data[row:row+w*p.C]...)
	}
	return out
}
