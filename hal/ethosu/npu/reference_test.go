package npu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/hal/ethosu/npu/weights"
)

// element returns an element of a map in memory, minus the zero point.
func (f *fmap) element(mem []byte, y, x, c int) int64 {
	var out [1]int32
	f.toInt32(out[:], mem[f.pixel(y, x)+f.channel(c):])
	return int64(out[0])
}

// input returns an element of the IFM as the kernel reads it: upscaled, zero on the padding.
func (o *kernelOp) input(mem []byte, y, x, c int) (v int64, onMap bool) {
	w := &o.window
	switch {
	case y < 0 || y >= w.h || x < 0 || x >= w.w:
		return 0, false
	case w.upscale == upscaleNone:
		return o.ifm.element(mem, y, x, c), true
	case w.upscale == upscaleZeros && (y%2 == 1 || x%2 == 1):
		return 0, true
	}
	return o.ifm.element(mem, y/2, x/2, c), true
}

// randomOp returns a kernel operation on a random map that fits mem.
func randomOp(r *rand.Rand, mem []byte, depthwise bool) *kernelOp {
	for {
		o := &kernelOp{}
		o.out.h, o.out.w, o.out.d = 1+r.IntN(6), 1+r.IntN(9), 1+r.IntN(40)
		d := 1 + r.IntN(40)
		if depthwise {
			d = o.out.d
		}
		v := &o.window
		*v = window{kh: 1 + r.IntN(4), kw: 1 + r.IntN(4), dilY: 1 + r.IntN(2), dilX: 1 + r.IntN(2), strideY: 1 + r.IntN(4),
			strideX: 1 + r.IntN(4), top: r.IntN(3), left: r.IntN(3), bottom: r.IntN(3), right: r.IntN(3), d: d, upscale: upscale(r.IntN(3))}
		v.h = (o.out.h-1)*v.strideY + (v.kh-1)*v.dilY + 1 - v.top - v.bottom
		v.w = (o.out.w-1)*v.strideX + (v.kw-1)*v.dilX + 1 - v.left - v.right
		if v.h <= 0 || v.w <= 0 {
			continue
		}
		f := &o.ifm
		f.h, f.w = v.mapSize()
		f.d, f.size, f.signed, f.bricks = d, 1<<r.IntN(3), r.IntN(2) == 0, r.IntN(2) == 0
		f.zero = int32(r.IntN(20) - 10)
		f.width0, f.height0, f.height1 = 1+r.IntN(f.w+1), 1+r.IntN(f.h+1), 1+r.IntN(f.h+1)
		for i := range f.base {
			f.base[i] = int64(r.IntN(2000))
		}
		f.strideX, f.strideC = int64(r.IntN(40*f.size)), int64(r.IntN(500))
		if f.strideY = int64(r.IntN(600)); r.IntN(3) == 0 {
			f.strideX = int64(d * f.size) // adjacent pixels
		}
		if f.bricks {
			f.strideX = int64(brick * f.size)
		}
		if s := f.span(); s.lo < 0 || s.hi > int64(len(mem)) {
			continue
		}
		o.tile = 1 + r.IntN(o.out.w)
		return o
	}
}

// TestKernels compares convolutions and pools with sums over single elements.
func TestKernels(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	mem := make([]byte, 1<<16)
	for i := range mem {
		mem[i] = byte(r.Uint32())
	}
	for n := range 600 {
		kind := []string{"conv", "depthwise", "max", "min", "sum", "average"}[n%6]
		o := randomOp(r, mem, kind != "conv")
		k := o.window.taps() * o.window.d
		if kind == "depthwise" {
			k = o.window.taps()
		}
		v := make([]int16, o.out.d*k)
		for i := range v {
			v[i] = int16(r.IntN(511) - 255)
		}
		w := &packedWeights{}
		switch kind {
		case "conv":
			o.unit = conv{o}
			packInto(w, v, o.out.d, k, o.inputLimit())
		case "depthwise":
			o.unit = depthwise{o}
			w.transpose(&weights.Grid{Shape: weights.Shape{O: o.out.d, KH: o.window.kh, KW: o.window.kw, I: 1}, Values: v})
		default:
			modes := map[string]int{"max": poolMax, "min": poolMin, "sum": poolSum, "average": poolAverage}
			o.unit = pool{kernelOp: o, mode: modes[kind]}
		}
		p := &Program{needs: o.unit.needs()}
		run := (&Network{program: p}).NewRun(nil)
		run.mem, run.ctx, run.weights, run.operations = &Memory{mem}, context.Background(), w, uint64(n+1)
		acc := make([]int64, o.tile*o.out.d)
		for y := range o.out.h {
			for x0 := 0; x0 < o.out.w; x0 += o.tile {
				x1 := min(x0+o.tile, o.out.w)
				o.unit.accumulate(&run.workers[0], y, x0, x1, acc[:(x1-x0)*o.out.d])
				for i, got := range acc[:(x1-x0)*o.out.d] {
					x, c := x0+i/o.out.d, i%o.out.d
					if want := o.expect(mem, kind, v, y, x, c); got != want {
						t.Fatalf("%d: %s of %v, kernel %+v: element %d,%d,%d is %d, want %d", n, kind, &o.ifm, o.window, y, x, c, got, want)
					}
				}
			}
		}
	}
}

// expect returns an accumulator by definition.
func (o *kernelOp) expect(mem []byte, kind string, weights []int16, y, x, c int) int64 {
	v := &o.window
	best, sum, any := int64(0), int64(0), false
	for ky := range v.kh {
		for kx := range v.kw {
			iy, ix := y*v.strideY-v.top+ky*v.dilY, x*v.strideX-v.left+kx*v.dilX
			if kind == "conv" {
				for i := range v.d {
					e, _ := o.input(mem, iy, ix, i)
					sum += e * int64(weights[((c*v.kh+ky)*v.kw+kx)*v.d+i])
				}
				continue
			}
			e, onMap := o.input(mem, iy, ix, c)
			if kind == "depthwise" {
				e *= int64(weights[(c*v.kh+ky)*v.kw+kx])
			}
			sum += e
			if onMap && (!any || kind == "max" && e > best || kind == "min" && e < best) {
				best, any = e, true
			}
		}
	}
	if kind != "max" && kind != "min" {
		return sum
	}
	if !any {
		return map[string]int64{"max": -1 << 63, "min": 1<<63 - 1}[kind]
	}
	return best
}

// TestStores compares the stores of the output stage with single elements.
func TestStores(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 400 {
		o := &output{h: 1 + r.IntN(6), w: 1 + r.IntN(6), d: 1 + r.IntN(40), axes: transposes[0]}
		if n%2 == 0 {
			o.axes = transposes[[]int{0, 1, 2, 3, 6, 7}[r.IntN(6)]]
		} else {
			o.reverse = r.IntN(4)
		}
		dims := [3]int{o.h, o.w, o.d}
		f := &o.ofm
		*f = fmap{h: dims[o.axes[0]], w: dims[o.axes[1]], d: dims[o.axes[2]], size: 1 << r.IntN(4), bricks: r.IntN(2) == 0}
		f.width0, f.height0, f.height1 = 1+r.IntN(f.w+1), 1+r.IntN(f.h+1), 1+r.IntN(f.h+1)
		f.strideX = int64(f.d * f.size)
		if f.bricks {
			f.strideX = int64(brick * f.size)
		}
		f.strideC = int64(f.w) * f.strideX
		f.strideY = f.strideC * int64((f.d+brick-1)/brick)
		for i := range f.base {
			f.base[i] = int64(i) * f.strideY * int64(f.h) // no tile overlaps another
		}
		mem := make([]byte, f.span().hi)
		acc := make([]int64, o.w*o.d)
		for y := range o.h {
			for i := range acc {
				acc[i] = int64(y*len(acc) + i + 1)
			}
			cut := r.IntN(o.w + 1)
			o.store(mem, acc, y, 0, cut)
			o.store(mem, acc[cut*o.d:], y, cut, o.w)
		}
		for i := range o.h * o.w * o.d {
			at := o.place(i/(o.w*o.d), i/o.d%o.w, i%o.d)
			if got, want := mem[at], byte(i+1); got != want {
				t.Fatalf("%d: %s: element %d at %#x starts with %d, want %d", n, fmt.Sprint(o.lines()), i, at, got, want)
			}
		}
	}
}

// place returns the offset of an element, by definition.
func (o *output) place(y, x, c int) int64 {
	switch o.reverse {
	case 1:
		y = o.h - 1 - y
	case 2:
		x = o.w - 1 - x
	case 3:
		c = o.d - 1 - c
	}
	f, from := &o.ofm, [3]int{y, x, c}
	y, x, c = from[o.axes[0]], from[o.axes[1]], from[o.axes[2]]
	tile, height := 0, f.height0
	if x >= f.width0 {
		tile, height, x = 1, f.height1, x-f.width0
	}
	if y >= height {
		tile, y = tile+2, y-height
	}
	at := f.base[tile] + int64(y)*f.strideY
	if f.bricks {
		return at + int64(c/16)*f.strideC + int64(16*f.size*x+c%16*f.size)
	}
	return at + int64(x)*f.strideX + int64(c*f.size)
}
