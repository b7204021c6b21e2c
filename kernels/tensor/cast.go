package tensor

import "sync"

// CanCast reports whether a value of type from may be stored as type to in the result of an
// operator (c10::canCast): not complex as real, not float as integer, and only bool as bool.
func CanCast(from, to DType) bool {
	switch {
	case from.IsComplex() && !to.IsComplex():
		return false
	case from.IsFloat() && (to.IsInt() || to == Bool):
		return false
	}
	return from == Bool || to != Bool
}

// Cast converts every element of src to dst's type. The two must have the same number of elements
// and the same memory order. Rounding and wrapping are those of [StoreFunc]; integers are converted
// to floats with one rounding, complex types only to complex types. ok is false, and nothing is
// written, if the numbers of elements differ or there is no conversion.
func Cast(dst, src *Tensor) (ok bool) {
	n := src.Numel()
	if dst.Numel() != n || len(dst.Data) != dst.NBytes() || len(src.Data) != src.NBytes() {
		return false
	}
	return CastBytes(dst.Data, dst.DType, src.Data, src.DType, n)
}

// CastBytes is [Cast] for the first n elements of src and dst. Both must be aligned to their
// element sizes, and must be identical or not overlap.
func CastBytes(dst []byte, to DType, src []byte, from DType, n int) (ok bool) {
	if from == to {
		copy(dst[:n*to.Size()], src)
		return true
	}
	if from.IsComplex() && to.IsComplex() { // part by part
		from, to, n = from.Component(), to.Component(), 2*n
	}
	switch CastType(from, to) {
	case Float32:
		return castThrough[float32](dst, to, src, from, n)
	case Float64:
		return castThrough[float64](dst, to, src, from, n)
	case Int32:
		return castThrough[int32](dst, to, src, from, n)
	case Complex128:
		return false
	}
	return castThrough[int64](dst, to, src, from, n)
}

// CastType returns the compute type through which a conversion between real types rounds once,
// Complex128 if one of the two is complex.
func CastType(from, to DType) DType {
	if from.IsComplex() || to.IsComplex() {
		return Complex128
	}
	d := from
	if !from.IsFloat() {
		d = to
	}
	c, _ := ComputeType(d)
	if c == Int64 && FitsInt32(from) && FitsInt32(to) {
		return Int32
	}
	return c
}

// FitsInt32 reports whether d is bool or an integer type whose values all fit int32.
func FitsInt32(d DType) bool {
	return d == Bool || d.IsInt() && (d.Size() <= 2 || d == Int32)
}

// blocks recycles the buffers of casts: 512 elements, which fit the cache.
var blocks = sync.Pool{New: func() any { return new([512]int64) }}

func castThrough[C Convertible](dst []byte, to DType, src []byte, from DType, n int) bool {
	load, store := Loader[C](from), Storer[C](to)
	if load == nil || store == nil {
		return false
	}
	block := blocks.Get().(*[512]int64)
	defer blocks.Put(block)
	buf := View[C](BytesOf(block[:]))[:len(block)]
	for i := 0; i < n; i += len(buf) {
		b := buf[:min(len(buf), n-i)]
		load(b, src[i*from.Size():])
		store(dst[i*to.Size():], b)
	}
	return true
}

// Put stores v as an element of type d at the start of dst, which must be aligned to it. ok is
// false for types that operators do not compute on.
func Put[C Convertible](dst []byte, d DType, v C) (ok bool) {
	store := Storer[C](d)
	if store == nil {
		return false
	}
	block := blocks.Get().(*[512]int64)
	buf := View[C](BytesOf(block[:1]))[:1]
	buf[0] = v
	store(dst, buf)
	blocks.Put(block)
	return true
}

// Get loads the element of type d at the start of src, which must be aligned to it. ok is false for
// types that operators do not compute on.
func Get[C Convertible](src []byte, d DType) (v C, ok bool) {
	load := Loader[C](d)
	if load == nil {
		return 0, false
	}
	block := blocks.Get().(*[512]int64)
	buf := View[C](BytesOf(block[:1]))[:1]
	load(buf, src)
	v = buf[0]
	blocks.Put(block)
	return v, true
}
