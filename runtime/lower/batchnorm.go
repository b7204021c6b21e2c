package lower

import (
	"math"
	"slices"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// layer is a class of operators whose result is linear in its weight and bias: their argument indexes, and
// the weight's dimension that holds the output channels.
type layer struct {
	class        opclass.Class
	weight, bias int
	axis         int
	rank         int // rank of the result if channels are its last dimension, 0 if they are the second
	isPlain      func(p *pass, s *ir.Step) bool
}

var layers = []layer{
	{class: opclass.Convolution, weight: 1, bias: 2, isPlain: func(p *pass, s *ir.Step) bool {
		return !p.m.Values[s.Args[6]].Bool
	}},
	// Transposed: with several groups this dimension holds the channels of one group only.
	{class: opclass.Convolution, weight: 1, bias: 2, axis: 1, isPlain: func(p *pass, s *ir.Step) bool {
		return p.m.Values[s.Args[6]].Bool
	}},
	{class: opclass.Linear, weight: 1, bias: 2, rank: 2},
	{class: opclass.AddMM, weight: 2, bias: 0, axis: 1, rank: 2, isPlain: func(p *pass, s *ir.Step) bool {
		return p.isNumber(s.Args[3], 1) && p.isNumber(s.Args[4], 1)
	}},
}

// foldBatchNorm multiplies the constants of a convolution or linear layer by the scale of the batch
// norm that is the only reader of its result. The layer then writes the batch norm's result.
func foldBatchNorm(p *pass, i int) bool {
	s := &p.m.Steps[i]
	if !p.isClass(i, opclass.BatchNorm) {
		return false
	}
	return p.foldInto(i, s.Args[0], s.Args[7], func() (*affine, bool) { return p.affine(s) })
}

// foldInto makes the layer that computes in, which step i alone reads, compute out: a function of each channel of in.
func (p *pass) foldInto(i, in, out int, function func() (*affine, bool)) bool {
	j, ok := p.producer(i, in)
	if !ok || !p.alike(in, out) || !p.isOnlyOut(i, out) {
		return false
	}
	l := p.layer(j, in)
	if l == nil {
		return false
	}
	a, ok := function()
	if !ok || !p.fold(i, j, l, a) {
		return false
	}
	for k, v := range p.m.Steps[j].Args {
		if v == in {
			p.change().SetArg(j, k, out)
		}
	}
	p.change().Drop(i)
	return true
}

// isOnlyOut reports whether no other step writes out, and no step reads the other results of step
// i.
func (p *pass) isOnlyOut(i, out int) bool {
	storage := p.m.Values[out].Storage
	if p.m.Storages[storage].Kind != ir.Activation || len(p.writers[storage]) != 1 {
		return false
	}
	for k, v := range p.m.Steps[i].Writes {
		if d := &p.flow.Defs[p.flow.Steps[i].Makes[k]]; v != out && (d.Live || len(d.Uses) > 0) {
			return false
		}
	}
	return true
}

// layer returns the table row of step j if its weight and bias are constants and it writes out.
func (p *pass) layer(j, out int) *layer {
	s := &p.m.Steps[j]
	for n := range layers {
		l := &layers[n]
		if !p.isClass(j, l.class) || l.isPlain != nil && !l.isPlain(p, s) {
			continue
		}
		w, sizes := p.m.Values[s.Args[l.weight]].Tensor, p.m.Values[out].Tensor.Sizes
		if l.rank > 0 && len(sizes) != l.rank || len(w.Sizes) <= l.axis || !p.isFloats(s.Args[l.weight]) || s.Args[firstOut(s)] != out {
			continue
		}
		if l.axis > 0 && !slices.IsSorted(w.DimOrder) || len(w.DimOrder) > 0 && l.axis == 0 && w.DimOrder[0] != 0 {
			continue // channels are found by their stride
		}
		return l
	}
	return nil
}

func (p *pass) isFloats(v int) bool {
	t := p.m.Values[v].Tensor
	return t != nil && t.Const && t.DType == tensor.Float32
}

// vector returns an optional argument that is a float32 constant of n elements along its last
// dimension, or n times absent if it was omitted.
func (p *pass) vector(v, n int, absent float32) ([]float32, bool) {
	if p.m.Values[v].Kind == tensor.None {
		return slices.Repeat([]float32{absent}, n), true
	}
	if !p.isFloats(v) || p.m.Values[v].Tensor.NBytes() != int64(4*n) {
		return nil, false
	}
	if sizes := p.m.Values[v].Tensor.Sizes; n > 1 && sizes[len(sizes)-1] != n {
		return nil, false // an addend of one element per row
	}
	return p.floats(v), true
}

// affine is a function of each channel: x·scale + shift.
type affine struct {
	scale []float32
	shift []float64
}

// affine returns the function of step s, or false if it is not constant or not finite.
func (p *pass) affine(s *ir.Step) (*affine, bool) {
	sizes := p.m.Values[s.Args[0]].Tensor.Sizes
	if len(sizes) < 2 || p.m.Values[s.Args[0]].Tensor.DType != tensor.Float32 || !p.isFloats(s.Args[3]) {
		return nil, false
	}
	n := sizes[1]
	var vectors [4][]float32 // weight, bias, mean, variance
	for k, absent := range [...]float32{1, 0, 0, 1} {
		var ok bool
		if vectors[k], ok = p.vector(s.Args[1+k], n, absent); !ok {
			return nil, false
		}
	}
	eps, _ := p.number(s.Args[6])
	a := &affine{make([]float32, n), make([]float64, n)}
	for c := range n {
		a.scale[c] = float32(float64(vectors[0][c]) / math.Sqrt(float64(vectors[3][c])+eps))
		a.shift[c] = float64(vectors[1][c]) - float64(vectors[2][c])*float64(a.scale[c])
		if a.scale[c]-a.scale[c] != 0 || a.shift[c]-a.shift[c] != 0 {
			return nil, false
		}
	}
	return a, true
}

// fold gives the layer of step j new constants that include a.
func (p *pass) fold(i, j int, l *layer, a *affine) bool {
	s := &p.m.Steps[j]
	w := p.m.Values[s.Args[l.weight]].Tensor
	n := len(a.scale)
	bias, ok := p.vector(s.Args[l.bias], n, 0)
	bytes := w.NBytes() + int64(4*n)
	if !ok || w.Sizes[l.axis] != n || bytes > p.left.Bytes || bytes/4 > p.left.Work {
		return false
	}
	p.left.Bytes, p.left.Work = p.left.Bytes-bytes, p.left.Work-bytes/4
	inner := 1 // elements of the weight between two channels
	for d := l.axis + 1; d < len(w.Sizes); d++ {
		inner *= w.Sizes[d]
	}
	offset := newFloats(n)
	for c := range offset {
		offset[c] = float32(float64(bias[c])*float64(a.scale[c]) + a.shift[c])
	}
	if slices.ContainsFunc(a.scale, func(x float32) bool { return x != 1 }) {
		weight := newFloats(int(w.NBytes() / 4))
		if !p.left.Blank {
			a.multiply(weight, p.floats(s.Args[l.weight]), inner)
		}
		p.change().SetArg(j, l.weight, p.constant(*w, weight))
	}
	cpu.Forget() // the next reader has the copies
	p.change().SetArg(j, l.bias, p.constant(ir.Tensor{DType: tensor.Float32, Sizes: []int{n}, DimOrder: []uint8{0}}, offset))
	p.record(bytes, i, j)
	return true
}

// multiply sets dst to src times the scale of each channel, with inner consecutive elements per
// channel.
func (a *affine) multiply(dst, src []float32, inner int) {
	n := len(a.scale)
	if inner == 1 {
		for k := 0; k < len(src); k += n {
			simd.Mul(dst[k:k+n], src[k:k+n], a.scale)
		}
		return
	}
	for k := 0; k < len(src); k += inner {
		simd.ScaleShift(dst[k:k+inner], src[k:k+inner], a.scale[k/inner%n], 0)
	}
}

func (p *pass) constant(t ir.Tensor, data []float32) int {
	t.Name = ""
	return p.change().AddConstant(t, tensor.BytesOf(data))
}

// newFloats returns zeros with the alignment and padding that delegates require.
func newFloats(n int) []float32 { return tensor.View[float32](tensor.AlignedBytes(4 * n)) }
