package quantized

import (
	"fmt"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// The embeddings of quantized_decomposed gather rows of a quantized weight [V, D] by indices of any
// shape and dequantize them: out is [indices…, D]. Scales and optional zero points are [V], or [V,
// G] for G groups of D/G elements.
//
//	out = (weight - zero_point) · scale
//
// is computed in the type of the scales, half floats rounded after each step, and
// then converted to the out's type.

// embed returns the embedding of weights of the given number of bits. Argument out is 6, or 7 if it
// follows a dtype argument.
func embed(bits, out int) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error { return runEmbedding(c, a, bits, out) }
}

func runEmbedding(c *kernels.Ctx, a kernels.Args, bits, out int) error {
	if err := checkEmbedding(a, bits, out); err != nil {
		return err
	}
	e := kernels.Keep[embedder](c)
	if err := e.shape(a, bits); err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, out, e.sizes); err != nil {
		return err
	}
	if err := wantContiguous(a, out); err != nil {
		return err
	}
	if err := e.readIndices(c, a.Tensor(5), a.Tensor(0).Sizes[0]); err != nil {
		return err
	}
	e.bind(c, a, out)
	c.Parallel(len(e.index), cpu.Grain(e.width, elementCost), e)
	return nil
}

func checkEmbedding(a kernels.Args, bits, out int) error {
	weight, scales := a.Tensor(0), a.Tensor(1)
	if weight.Rank() != 2 || weight.DType != tensor.Uint8 && (weight.DType != tensor.Int8 || bits < 8) {
		return kernels.Badf(0, "a matrix of uint8, or of int8 for weights of 8 bits", "%v", weight)
	}
	if r := scales.Rank(); r < 1 || r > 2 || scales.Sizes[0] != weight.Sizes[0] {
		return kernels.Badf(1, fmt.Sprintf("[%d] or [%[1]d, groups]", weight.Sizes[0]), "%v", scales)
	}
	if zero := a.OptTensor(2); zero != nil && zero.Numel() != scales.Numel() {
		return kernels.Badf(2, fmt.Sprintf("one for each scale, %v", scales.Sizes), "%v", zero)
	}
	for _, i := range [...]int{1, 2, out} {
		if t := a.OptTensor(i); t != nil && t.DType != tensor.Float32 && t.DType != tensor.Float16 && t.DType != tensor.BFloat16 {
			return kernels.Bad(i, t.DType.String(), floatTypes)
		}
	}
	if out == 7 {
		if err := wantType(a, 6, a.Tensor(out)); err != nil {
			return err
		}
	}
	return wantContiguous(a, 0, 1, 2, 5)
}

// embedder is the loop over the indices.
type embedder struct {
	sizes  []int
	index  []int64
	width  int // elements per row
	packed int // bytes per row
	groups int // scales per row

	weight  []byte
	unpack  func(row []float32, packed []byte)
	scale   column
	zero    column // empty without zero points
	round   column // type of the scales if they are half floats, else empty
	out     column
	rows    []float32 // per thread: a row
	params  []float32 // per thread: the scales and the zero points of a row
	rounded []uint16  // per thread: a row of half floats
	convert bool      // the out's type differs from that of the scales
}

// column is a tensor's bytes with conversions from and to float32.
type column struct {
	bytes []byte
	size  int
	load  tensor.LoadFunc[float32]
	store tensor.StoreFunc[float32]
}

func columnOf(t *tensor.Tensor) column {
	if t == nil {
		return column{}
	}
	return column{t.Data, t.DType.Size(), tensor.Loader[float32](t.DType), tensor.Storer[float32](t.DType)}
}

// at returns the bytes of n elements starting at element i.
func (c *column) at(i, n int) []byte { return c.bytes[i*c.size : (i+n)*c.size] }

// shape computes the sizes of rows, groups and out.
func (e *embedder) shape(a kernels.Args, bits int) error {
	weight, scales, indices := a.Tensor(0), a.Tensor(1), a.Tensor(5)
	e.packed = weight.Sizes[1]
	e.width, e.groups = e.packed*(8/bits), 1
	if scales.Rank() == 2 {
		e.groups = scales.Sizes[1]
	}
	if e.groups == 0 || e.width%e.groups != 0 {
		return kernels.Badf(1, fmt.Sprintf("groups that divide %d", e.width), "%d", e.groups)
	}
	if indices.Rank() == tensor.MaxRank {
		return kernels.Badf(5, fmt.Sprintf("a rank below %d", tensor.MaxRank), "%v", indices)
	}
	e.sizes = append(append(e.sizes[:0], indices.Sizes...), e.width)
	if _, ok := tensor.Product(e.sizes); !ok {
		return kernels.Badf(5, "sizes whose product fits", "%v", indices)
	}
	switch {
	case bits == 2:
		e.unpack = unpack2
	case bits == 4:
		e.unpack = unpack4
	default:
		e.unpack = tensor.Loader[float32](weight.DType)
	}
	return nil
}

// readIndices reads and checks the indices, which must be in [0, rows).
func (e *embedder) readIndices(c *kernels.Ctx, indices *tensor.Tensor, rows int) error {
	if err := kernels.WantDType(5, indices, tensor.Int64, tensor.Int32); err != nil {
		return err
	}
	e.index = kernels.Scratch[int64](c, indices.Numel())
	tensor.Loader[int64](indices.DType)(e.index, indices.Data)
	for _, i := range e.index {
		if i < 0 || i >= int64(rows) {
			return kernels.Badf(5, fmt.Sprintf("indices in [0, %d)", rows), "%d", i)
		}
	}
	return nil
}

// bind sets the loop's operands and buffers.
func (e *embedder) bind(c *kernels.Ctx, a kernels.Args, out int) {
	scales := a.Tensor(1)
	e.weight, e.scale, e.zero, e.out = a.Tensor(0).Data, columnOf(scales), columnOf(a.OptTensor(2)), columnOf(a.Tensor(out))
	e.round = column{}
	if scales.DType != tensor.Float32 {
		e.round = e.scale
	}
	e.convert = scales.DType != a.Tensor(out).DType
	e.rows = kernels.Scratch[float32](c, e.width*c.Threads())
	e.rounded = kernels.Scratch[uint16](c, e.width*c.Threads())
	e.params = kernels.Scratch[float32](c, 2*e.groups*c.Threads())
}

// Range gathers rows for indices [lo, hi).
func (e *embedder) Range(worker, lo, hi int) {
	row, rounded := e.rows[e.width*worker:][:e.width], e.rounded[e.width*worker:][:e.width]
	params := e.params[2*e.groups*worker:][:2*e.groups]
	scale, zero, n := params[:e.groups], params[e.groups:], e.width/e.groups
	for i := lo; i < hi; i++ {
		at := int(e.index[i])
		e.unpack(row, e.weight[at*e.packed:(at+1)*e.packed])
		if e.zero.load != nil {
			e.zero.load(zero, e.zero.at(at*e.groups, e.groups))
			for g, z := range zero {
				simd.ScaleShift(row[g*n:][:n], row[g*n:], 1, -z)
			}
			e.roundRow(row, rounded)
		}
		e.scale.load(scale, e.scale.at(at*e.groups, e.groups))
		for g, s := range scale {
			simd.ScaleShift(row[g*n:][:n], row[g*n:], s, 0)
		}
		if e.convert {
			e.roundRow(row, rounded)
		}
		e.out.store(e.out.at(i*e.width, e.width), row)
	}
}

// roundRow rounds a row to the half type of the scales.
func (e *embedder) roundRow(row []float32, rounded []uint16) {
	if e.round.size == 0 {
		return
	}
	b := tensor.BytesOf(rounded)
	e.round.store(b, row)
	e.round.load(row, b)
}

// unpack4 unpacks two weights per byte, the high half first, from -8.
func unpack4(row []float32, packed []byte) {
	for i, b := range packed {
		pair := row[2*i : 2*i+2]
		pair[0], pair[1] = float32(int(b>>4)-8), float32(int(b&15)-8)
	}
}

// unpack2 unpacks four weights per byte, the lowest bits first, from -2.
func unpack2(row []float32, packed []byte) {
	for i, b := range packed {
		four := row[4*i : 4*i+4]
		four[0], four[1] = float32(int(b&3)-2), float32(int(b>>2&3)-2)
		four[2], four[3] = float32(int(b>>4&3)-2), float32(int(b>>6)-2)
	}
}
