package index

import (
	"math"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// makeKeys32 computes the keys of the first elements of a row.
func (s *sorter) makeKeys32(keys []uint32, row []byte, w span) {
	var flip uint32
	if s.descending {
		flip = math.MaxUint32
	}
	if s.dtype.IsFloat() {
		floats := part(s.floats, w)[:len(keys)]
		tensor.Loader[float32](s.dtype)(floats, row)
		for i, v := range floats {
			keys[i] = floatKey32(v) ^ flip
		}
		return
	}
	if s.dtype != tensor.Uint32 {
		flip ^= 1 << 31
	}
	wide := part(s.wide, w)[:len(keys)]
	tensor.Loader[int64](s.dtype)(wide, row)
	for i, v := range wide {
		keys[i] = uint32(v) ^ flip
	}
}

func (s *sorter) makeKeys64(keys []uint64, row []byte, w span) {
	var flip uint64
	if s.descending {
		flip = math.MaxUint64
	}
	switch s.dtype {
	case tensor.Float64:
		for i, v := range tensor.View[float64](row) {
			keys[i] = floatKey64(v) ^ flip
		}
		return
	case tensor.Int64:
		flip ^= 1 << 63
	}
	for i, v := range tensor.View[uint64](row) {
		keys[i] = v ^ flip
	}
}

// floatKey32 orders as floats do, with both zeros equal and NaN above all.
func floatKey32(v float32) uint32 {
	switch b := math.Float32bits(v); {
	case v != v:
		return math.MaxUint32
	case v == 0:
		return 1 << 31
	default:
		return b ^ (uint32(int32(b)>>31) | 1<<31)
	}
}

// floatKey64 is floatKey32 of a float64.
func floatKey64(v float64) uint64 {
	switch b := math.Float64bits(v); {
	case v != v:
		return math.MaxUint64
	case v == 0:
		return 1 << 63
	default:
		return b ^ (uint64(int64(b)>>63) | 1<<63)
	}
}
