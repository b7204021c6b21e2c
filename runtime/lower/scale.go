package lower

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
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

// foldScale folds a product with, or a sum with, a number or a constant of each channel into the constants of the layer before it.
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
	return p.foldInto(i, x, out, func(l *layer) (*affine, bool) {
		list, ok := p.ofChannels(y, p.m.Values[x].Tensor.Sizes, l)
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
	})
}

// ofChannels returns the number for each channel of a layer's result in a constant that is broadcast to it.
func (p *pass) ofChannels(v int, sizes []int, l *layer) ([]float64, bool) {
	axis := 1
	if l.rank > 0 {
		axis = l.rank - 1
	}
	if len(sizes) <= axis {
		return nil, false
	}
	n := sizes[axis]
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
		if at := len(sizes) - len(own) + d; size != 1 && (at != axis || size != n) {
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
