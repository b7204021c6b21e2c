package graph

import (
	"hash/maphash"
	"math"

	"github.com/etrun-go/etrun/cmd/etrun/internal/valuetext"
	"github.com/etrun-go/etrun/kernels/tensor"
)

const (
	bins        = 32
	sampled     = 1 << 16 // elements of one constant, in blocks over its length
	sampleBlock = 256
)

// sums of constants are compared within the process only.
var seed = maphash.MakeSeed()

// constant adds a constant, once, and returns its index, -1 beyond the limit.
func (p *Program) constant(seen map[*byte]int, name string, t tensor.DType, sizes []int, data []byte) int {
	if len(data) == 0 {
		return -1
	}
	if at, ok := seen[&data[0]]; ok && p.Constants[at].Bytes == int64(len(data)) {
		return at
	}
	if len(p.Constants) == maxConstants {
		return -1
	}
	seen[&data[0]] = len(p.Constants)
	p.Constants = append(p.Constants, Constant{Name: valuetext.Cut(name), Type: valuetext.Type(t, sizes), Bytes: int64(len(data)),
		Histogram: histogram(t, data), sum: maphash.Bytes(seed, data)})
	return len(p.Constants) - 1
}

// histogram counts elements; nil for types without numbers.
func histogram(t tensor.DType, data []byte) *Histogram {
	load, size := tensor.Loader[float64](t), t.Size()
	if load == nil || size == 0 || len(data) < size {
		return nil
	}
	values := sample(load, size, data)
	h := &Histogram{Min: math.Inf(1), Max: math.Inf(-1)}
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

// fill counts the bins, and computes the deviation.
func (h *Histogram) fill(values []float64) {
	h.Bins = make([]int, bins)
	squares := 0.0
	for _, x := range values {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		squares += (x - h.Mean) * (x - h.Mean)
		at := 0
		if h.Max > h.Min {
			at = min(int((x/2-h.Min/2)/(h.Max/2-h.Min/2)*bins), bins-1) // halves: the difference may overflow
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

// sample loads elements: all, or blocks at equal distances. The bytes of a file need not be aligned.
func sample(load tensor.LoadFunc[float64], size int, data []byte) []float64 {
	n := len(data) / size
	blocks, length := 1, n
	if n > sampled {
		blocks, length = sampled/sampleBlock, sampleBlock
	}
	values, aligned := make([]float64, blocks*length), tensor.AlignedBytes(length*size)
	for k := range blocks {
		at := 0
		if blocks > 1 {
			at = k * ((n - length) / (blocks - 1))
		}
		copy(aligned, data[at*size:])
		load(values[k*length:][:length], aligned)
	}
	return values
}
