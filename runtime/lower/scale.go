package lower

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// scaling is a class of operators with an operand that scales or shifts the other one.
type scaling struct {
	class  opclass.Class
	of     func(y float64) (scale, shift float64)
	either bool // the operands may be exchanged
	alpha  bool // there also is a factor
}

var scalings = []scaling{
	{class: opclass.Mul, of: scaled, either: true}, {class: opclass.MulScalar, of: scaled},
	{class: opclass.Div, of: divided}, {class: opclass.DivScalar, of: divided},
	{class: opclass.Add, of: shifted, either: true, alpha: true}, {class: opclass.AddScalar, of: shifted, alpha: true},
	{class: opclass.Sub, of: lowered, alpha: true}, {class: opclass.SubScalar, of: lowered, alpha: true},
}

func scaled(y float64) (scale, shift float64)  { return y, 0 }
func divided(y float64) (scale, shift float64) { return 1 / y, 0 }
func shifted(y float64) (scale, shift float64) { return 1, y }
func lowered(y float64) (scale, shift float64) { return 1, -y }

func scalingClasses() (list []opclass.Class) {
	for i := range scalings {
		list = append(list, scalings[i].class)
	}
	return list
}

// foldScale folds a product with, or a sum with, a number or a constant of each channel into the constants of the layer before it, or
// those of the convolution behind it.
func foldScale(p *pass, i int) bool {
	s := &p.m.Steps[i]
	r := &scalings[slices.IndexFunc(scalings, func(r scaling) bool { return r.class == s.Op.Class })]
	if !p.isClass(i, r.class) || r.alpha && !p.isNumber(s.Args[2], 1) {
		return false
	}
	out := s.Args[firstOut(s)]
	x, y := s.Args[0], s.Args[1]
	if t := p.m.Values[x].Tensor; r.either && t != nil && t.Const {
		x, y = y, x
	}
	if t := p.m.Values[x].Tensor; t == nil || t.Const || t.DType != tensor.Float32 {
		return false
	}
	of := func() (*affine, bool) { return p.scaling(r, y, p.m.Values[x].Tensor.Sizes) }
	return p.foldInto(i, x, out, of) || p.foldBehind(i, x, out, of)
}

// scaling returns the function of each channel of a tensor, its second dimension.
func (p *pass) scaling(r *scaling, operand int, sizes []int) (*affine, bool) {
	list, ok := p.ofChannels(operand, sizes)
	if !ok {
		return nil, false
	}
	a := &affine{make([]float32, len(list)), make([]float64, len(list))}
	for c, y := range list {
		scale, shift := r.of(y)
		a.scale[c], a.shift[c] = float32(scale), shift
		if a.scale[c]-a.scale[c] != 0 || shift-shift != 0 {
			return nil, false
		}
	}
	return a, true
}

// ofChannels returns the number for each channel of a tensor in a constant that is broadcast to it.
func (p *pass) ofChannels(v int, sizes []int) ([]float64, bool) {
	if len(sizes) < 2 {
		return nil, false
	}
	n := sizes[1]
	if y, ok := p.number(v); ok {
		return slices.Repeat([]float64{y}, n), true
	}
	if !p.isFloats(v) {
		return nil, false
	}
	own := p.m.Values[v].Tensor.Sizes
	if len(own) > len(sizes) {
		return nil, false
	}
	for d, size := range own {
		if at := len(sizes) - len(own) + d; size != 1 && (at != 1 || size != n) {
			return nil, false
		}
	}
	var list []float64
	for _, y := range p.floats(v) {
		list = append(list, float64(y))
	}
	if len(list) == 1 {
		list = slices.Repeat(list, n)
	}
	return list, len(list) == n
}

// foldBehind makes the convolution that alone reads out, a function of each channel of x, read x.
func (p *pass) foldBehind(i, x, out int, function func() (*affine, bool)) bool {
	k, ok := p.onlyReader(i)
	if !ok || !p.isClass(k, opclass.Convolution) || !p.alike(x, out) || !p.maySwap(p.definition(i, x), x, out) {
		return false
	}
	s := &p.m.Steps[k]
	w := p.m.Values[s.Args[1]].Tensor
	if in := s.Args[0]; p.m.Values[in].Storage != p.m.Values[out].Storage || !p.alike(in, out) { // it may be another value of the same bytes
		return false
	}
	if p.m.Values[s.Args[6]].Bool || !p.isFloats(s.Args[1]) || len(w.Sizes) < 3 || !slices.IsSorted(w.DimOrder) {
		return false
	}
	a, ok := function()
	if !ok || !p.foldInputs(i, k, a) {
		return false
	}
	p.swap(p.definition(i, x), i)
	return true
}

// onlyReader returns the step that alone reads the result of step i.
func (p *pass) onlyReader(i int) (k int, ok bool) {
	if len(p.flow.Steps[i].Makes) != 1 {
		return 0, false
	}
	d := &p.flow.Defs[p.flow.Steps[i].Makes[0]]
	if d.Live || len(d.Uses) != 1 {
		return 0, false
	}
	return d.Uses[0].Step, true
}

// foldInputs includes the function of each input channel in the constants of convolution k. A shift is exact without padding only,
// whose zeros it does not change.
func (p *pass) foldInputs(i, k int, a *affine) bool {
	s := &p.m.Steps[k]
	w := p.m.Values[s.Args[1]].Tensor
	channels, perGroup := w.Sizes[0], w.Sizes[1]
	bias, ok := p.vector(s.Args[2], channels, 0)
	bytes := w.NBytes() + int64(4*channels)
	shifts := slices.ContainsFunc(a.shift, func(x float64) bool { return x != 0 })
	groups := len(a.scale) / max(perGroup, 1)
	if !ok || groups == 0 || groups*perGroup != len(a.scale) || channels%groups != 0 || shifts && p.isPadded(s) ||
		bytes > p.left.Bytes || bytes/4 > p.left.Work {
		return false
	}
	p.left.Bytes, p.left.Work = p.left.Bytes-bytes, p.left.Work-bytes/4
	from, weight, offset := p.floats(s.Args[1]), newFloats(int(w.NBytes()/4)), newFloats(channels)
	inner := len(from) / (channels * perGroup)
	for o := range channels {
		if p.left.Blank {
			break
		}
		sum := float64(bias[o])
		for c := range perGroup {
			in := o/(channels/groups)*perGroup + c
			for at := (o*perGroup + c) * inner; at < (o*perGroup+c+1)*inner; at++ {
				weight[at] = from[at] * a.scale[in]
				sum += float64(from[at]) * a.shift[in]
			}
		}
		offset[o] = float32(sum)
	}
	p.change().SetArg(k, 1, p.constant(*w, weight))
	if shifts {
		p.change().SetArg(k, 2, p.constant(ir.Tensor{DType: tensor.Float32, Sizes: []int{channels}, DimOrder: []uint8{0}}, offset))
	}
	p.record(bytes, k)
	return true
}

// isPadded reports whether a convolution pads its input.
func (p *pass) isPadded(s *ir.Step) bool {
	return slices.ContainsFunc(p.m.Values[s.Args[4]].Items(), func(v int) bool { return v < 0 || p.m.Values[v].Changes || p.m.Values[v].Int != 0 })
}
