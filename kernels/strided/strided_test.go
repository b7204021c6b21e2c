package strided

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// box is one copy for the tests: sizes, source strides and the order of the
// destination's dimensions.
type box struct {
	elem  int
	sizes []int
	order []int // dimensions from the outermost in the destination
	src   []int
	at    int // source offset
	need  int // source elements
}

func (b box) String() string {
	return fmt.Sprintf("elem %d sizes %v order %v src %v+%d", b.elem, b.sizes, b.order, b.src, b.at)
}

func (b box) dstStrides() (strides []int, n int) {
	strides, n = make([]int, len(b.sizes)), 1
	for _, d := range slices.Backward(b.order) {
		strides[d] = n
		n *= b.sizes[d]
	}
	return strides, n
}

// naive copies one element at a time.
func (b box) naive(dst, src []byte, strides []int) {
	index := make([]int, len(b.sizes))
	for {
		d, s := 0, b.at
		for i, x := range index {
			d += x * strides[i]
			s += x * b.src[i]
		}
		copy(dst[d*b.elem:(d+1)*b.elem], src[s*b.elem:])
		i := len(index) - 1
		for ; i >= 0; i-- {
			if index[i]++; index[i] < b.sizes[i] {
				break
			}
			index[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// randomBox permutes, slices, reverses or repeats the dimensions of a dense source.
func randomBox(r *rand.Rand, most int) box {
	rank := r.IntN(6)
	b := box{elem: 1 << r.IntN(5), sizes: make([]int, rank), order: r.Perm(rank), src: make([]int, rank), need: 1}
	for _, d := range r.Perm(rank) {
		n := 1 + r.IntN(most)
		step := 1
		if r.IntN(4) == 0 {
			step = 1 + r.IntN(3)
		}
		b.sizes[d], b.src[d] = n, b.need*step
		switch r.IntN(8) {
		case 0:
			b.at += (n - 1) * b.src[d]
			b.src[d] = -b.src[d]
			b.need *= n * step
		case 1:
			b.src[d] = 0
		default:
			b.need *= n * step
		}
	}
	return b
}

func (b box) check(t *testing.T, c Threads, s *Copier, shift int) {
	t.Helper()
	src := tensor.AlignedBytes((b.need + 2*shift) * b.elem)[shift*b.elem:]
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	strides, n := b.dstStrides()
	want := make([]byte, n*b.elem)
	b.naive(want, src, strides)
	all := tensor.AlignedBytes((n + 2*shift + 1) * b.elem)
	for i := range all {
		all[i] = 0xA5
	}
	got := all[shift*b.elem:]
	s.Copy(c, b.elem, Shape{b.sizes, strides, b.src}, Buffer{Data: got}, Buffer{Data: src, Offset: b.at})
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%v shift %d: byte %d of %d: got %#x, want %#x", b, shift, i, len(want), got[i], want[i])
		}
	}
	for i, v := range got[len(want):] {
		if v != 0xA5 {
			t.Fatalf("%v: byte %d past the end written", b, i)
		}
	}
}

func TestStridedRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pool := cpu.NewPool(2)
	defer pool.Close()
	c := kernels.NewCtx(pool)
	var s Copier
	for i := range 3000 {
		randomBox(r, 3+i%17).check(t, c, &s, i%3)
	}
}

func TestStridedShapes(t *testing.T) {
	c := kernels.NewCtx(nil)
	var s Copier
	for _, b := range []box{
		{elem: 4, sizes: []int{}, order: []int{}, src: []int{}, need: 1},
		{elem: 4, sizes: []int{700, 300}, order: []int{1, 0}, src: []int{300, 1}, need: 700 * 300},
		{elem: 1, sizes: []int{129, 65}, order: []int{1, 0}, src: []int{65, 1}, need: 129 * 65},
		{elem: 2, sizes: []int{2, 640, 3}, order: []int{0, 2, 1}, src: []int{1920, 3, 1}, need: 3840},
		{elem: 8, sizes: []int{2, 3, 640}, order: []int{0, 2, 1}, src: []int{1920, 640, 1}, need: 3840},
		{elem: 16, sizes: []int{33, 40}, order: []int{1, 0}, src: []int{40, 1}, need: 1320},
		{elem: 4, sizes: []int{1 << 20}, order: []int{0}, src: []int{1}, need: 1 << 20},
		{elem: 4, sizes: []int{5, 1000}, order: []int{0, 1}, src: []int{1, 0}, need: 5},
		{elem: 4, sizes: []int{3, 100}, order: []int{0, 1}, src: []int{200, -1}, at: 99, need: 600},
	} {
		t.Run(b.String(), func(t *testing.T) { b.check(t, c, &s, 0) })
	}
}

// TestInterleave merges a few rows, apart from each other, and takes them apart again.
func TestInterleave(t *testing.T) {
	const n, apart = 701, 5
	pool := cpu.NewPool(2)
	defer pool.Close()
	c := kernels.NewCtx(pool)
	var s Copier
	for _, elem := range []int{1, 2, 4, 8, 16} {
		for rows := 1; rows <= wide+1; rows++ {
			for _, n := range []int{n, 90 * n} {
				merge := box{elem: elem, sizes: []int{rows, n}, order: []int{1, 0}, src: []int{n + apart, 1}, need: rows * (n + apart)}
				part := box{elem: elem, sizes: []int{n, rows}, order: []int{1, 0}, src: []int{rows, 1}, need: rows * n}
				merge.check(t, c, &s, rows)
				part.check(t, c, &s, rows)
			}
		}
	}
}

// TestStridedEmpty copies no elements: nothing is read or written.
func TestStridedEmpty(t *testing.T) {
	dst := []byte{1, 2, 3, 4}
	for _, to := range []Buffer{{}, {Data: dst}} {
		var s Copier
		s.Copy(kernels.NewCtx(nil), 4, Shape{[]int{3, 0}, []int{1, 1}, []int{1, 1}}, to, Buffer{Data: []byte{5, 6, 7, 8}})
	}
	if want := []byte{1, 2, 3, 4}; !bytes.Equal(dst, want) {
		t.Errorf("got %v, want %v", dst, want)
	}
}

func BenchmarkStrided(b *testing.B) {
	for _, bb := range []struct {
		name string
		box
	}{
		{"dense 1M", box{elem: 4, sizes: []int{1 << 20}, order: []int{0}, src: []int{1}}},
		{"transpose 128x128", box{elem: 4, sizes: []int{128, 128}, order: []int{1, 0}, src: []int{128, 1}}},
		{"transpose 512x2048", box{elem: 4, sizes: []int{2048, 512}, order: []int{1, 0}, src: []int{512, 1}}},
		{"transpose 768x768", box{elem: 4, sizes: []int{768, 768}, order: []int{1, 0}, src: []int{768, 1}}},
		{"transpose f16 768x768", box{elem: 2, sizes: []int{768, 768}, order: []int{1, 0}, src: []int{768, 1}}},
		{"transpose i8 768x768", box{elem: 1, sizes: []int{768, 768}, order: []int{1, 0}, src: []int{768, 1}}},
		{"heads 1x128x8x64", box{elem: 4, sizes: []int{128, 8, 64}, order: []int{1, 0, 2}, src: []int{512, 64, 1}}},
		{"nchw to nhwc 3x224x224", box{elem: 4, sizes: []int{3, 224 * 224}, order: []int{1, 0}, src: []int{224 * 224, 1}}},
		{"nhwc to nchw 3x224x224", box{elem: 4, sizes: []int{3, 224 * 224}, order: []int{0, 1}, src: []int{1, 3}}},
		{"nhwc to nchw 64x56x56", box{elem: 4, sizes: []int{64, 3136}, order: []int{0, 1}, src: []int{1, 64}}},
		{"shuffle x2 64x56x56", box{elem: 4, sizes: []int{16, 56, 2, 56, 2}, order: []int{0, 1, 2, 3, 4}, src: []int{4 * 3136, 56, 2 * 3136, 1, 3136}}},
		{"every second column", box{elem: 4, sizes: []int{512, 256}, order: []int{0, 1}, src: []int{512, 2}}},
		{"expand rows", box{elem: 4, sizes: []int{1024, 256}, order: []int{0, 1}, src: []int{1, 0}}},
		{"flip", box{elem: 4, sizes: []int{512, 256}, order: []int{0, 1}, src: []int{256, -1}, at: 255}},
	} {
		strides, n := bb.dstStrides()
		need := 1 + bb.at
		for i, m := range bb.sizes {
			need += max(bb.src[i], 0) * (m - 1)
		}
		src, dst := tensor.AlignedBytes(need*bb.elem), tensor.AlignedBytes(n*bb.elem)
		flat := tensor.AlignedBytes(n * bb.elem)
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", bb.name, threads), func(b *testing.B) {
				pool := cpu.NewPool(threads)
				defer pool.Close()
				c, s := kernels.NewCtx(pool), new(Copier)
				b.SetBytes(int64(n * bb.elem))
				for b.Loop() {
					s.Copy(c, bb.elem, Shape{bb.sizes, strides, bb.src}, Buffer{Data: dst}, Buffer{Data: src, Offset: bb.at})
				}
				start := time.Now()
				for range b.N {
					copy(flat, dst)
				}
				b.ReportMetric(float64(b.Elapsed())/float64(time.Since(start)), "x-memcpy")
			})
		}
	}
}
