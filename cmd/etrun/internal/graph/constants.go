package graph

import (
	"bytes"
	"context"
	"hash/maphash"
	"math"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/cmd/etrun/internal/valuetext"
	"github.com/etrun-go/etrun/cmd/etrun/internal/weight"
)

const (
	bins        = 32
	sampled     = 1 << 16 // elements of one constant, in blocks over its length
	sampleBlock = 256
)

// sums of constants are compared within the process only.
var seed = maphash.MakeSeed()

// constant adds a constant, once, and returns its index, -1 beyond the limit. w may be nil.
func (p *Program) constant(seen map[*byte]int, w *weight.Weight) int {
	if w == nil {
		return -1
	}
	if at, ok := seen[&w.Data[0]]; ok && p.Constants[at].Bytes == int64(len(w.Data)) {
		return at
	}
	if len(p.Constants) == maxConstants {
		return -1
	}
	seen[&w.Data[0]] = len(p.Constants)
	c := Constant{Name: valuetext.Cut(w.Name), Type: valuetext.Cut(w.Type()), Bytes: int64(len(w.Data))}
	if p.visit != nil {
		p.visit(w)
	} else {
		c.sum, c.Histogram = maphash.Bytes(seed, w.Data), histogram(w, false)
		if w.Quantized() {
			c.Real = histogram(w, true)
		}
		c.keep(w, &p.kept)
	}
	p.Constants = append(p.Constants, c)
	return len(p.Constants) - 1
}

// maxKept is the size of the constants that a page has, for all who want to save them.
const maxKept = 8 << 20

// keep makes a file of a constant that fits into what is left.
func (c *Constant) keep(w *weight.Weight, kept *int) {
	n := max(len(w.Data), w.Count())
	if n > maxKept-*kept {
		return
	}
	var b bytes.Buffer
	if npy.Write(&b, w.Tensor(false)) == nil {
		c.file, c.Saved, *kept = b.Bytes(), true, *kept+n
	}
}

// histogram counts elements; nil for types without numbers.
func histogram(w *weight.Weight, real bool) *Histogram {
	values := sample(w, real)
	if values == nil {
		return nil
	}
	h := &Histogram{Total: w.Count(), Min: math.Inf(1), Max: math.Inf(-1)}
	sum := 0.0
	for _, x := range values {
		switch {
		case math.IsNaN(x) || math.IsInf(x, 0):
			h.Special++
			continue
		case x == 0:
			h.Zeros++
		}
		h.Count, sum = h.Count+1, sum+x
		h.Min, h.Max = min(h.Min, x), max(h.Max, x)
	}
	if h.Count == 0 {
		h.Min, h.Max, h.Bins = 0, 0, []int{}
		return h
	}
	h.Mean = sum / float64(h.Count)
	h.fill(values)
	return h
}

// fill counts the bins, and computes the deviation. Few integers have a bin each.
func (h *Histogram) fill(values []float64) {
	n := bins
	if h.Max-h.Min < bins && !slices.ContainsFunc(values, func(x float64) bool { return x != math.Trunc(x) }) {
		n = int(h.Max-h.Min) + 1
	}
	h.Bins = make([]int, n)
	squares := 0.0
	for _, x := range values {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		squares += (x - h.Mean) * (x - h.Mean)
		at := 0
		if h.Max > h.Min {
			at = min(int((x/2-h.Min/2)/(h.Max/2-h.Min/2)*float64(n)), n-1) // halves: the difference may overflow
		}
		h.Bins[at]++
	}
	h.Dev = math.Sqrt(squares / float64(h.Count))
	for _, x := range []*float64{&h.Mean, &h.Dev} {
		if math.IsNaN(*x) || math.IsInf(*x, 0) {
			*x = 0 // sums of huge numbers; JSON has no infinity
		}
	}
}

// sample loads elements: all, or blocks at equal distances; nil for types without numbers, and without elements.
func sample(w *weight.Weight, real bool) []float64 {
	n := w.Count()
	blocks, length := 1, n
	if n > sampled {
		blocks, length = sampled/sampleBlock, sampleBlock
	}
	values := make([]float64, blocks*length)
	for k := range blocks {
		at := 0
		if blocks > 1 {
			at = k * ((n - length) / (blocks - 1))
		}
		if n == 0 || !w.Load(values[k*length:][:length], at, real) {
			return nil
		}
	}
	return values
}

// Weights describes the constants of a program one by one, with the names that New has for them.
func Weights(ctx context.Context, prog *etrun.Program, visit func(*weight.Weight)) error {
	_, err := newProgram(ctx, prog, &Program{visit: visit})
	return err
}
