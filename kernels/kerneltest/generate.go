package kerneltest

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// maxElements is the largest number of elements of a generated tensor.
const maxElements = 4096

// generator converts bytes to the arguments of a call. The tensors of a call mostly share a type
// and related sizes, as operators expect.
type generator struct {
	data  []byte
	dtype tensor.DType
	sizes []int
}

func newGenerator(data []byte) *generator {
	g := &generator{data: data}
	g.dtype = pick(g, usualTypes)
	if g.chance(8) {
		g.dtype = pick(g, allTypes)
	}
	g.sizes = g.shape(g.below(6))
	return g
}

var usualTypes = []tensor.DType{
	tensor.Float32, tensor.Float32, tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int64,
	tensor.Int64, tensor.Int32, tensor.Int16, tensor.Int8, tensor.Uint8, tensor.Bool,
}

var allTypes = func() (all []tensor.DType) {
	for d := range tensor.DType(tensor.NumDTypes) {
		if d.Valid() {
			all = append(all, d)
		}
	}
	return all
}()

func (g *generator) byte() byte {
	if len(g.data) == 0 {
		return 0
	}
	b := g.data[0]
	g.data = g.data[1:]
	return b
}

// below returns a number in [0, n), n at most 256.
func (g *generator) below(n int) int { return int(g.byte()) % max(n, 1) }

// chance returns true once in n times.
func (g *generator) chance(n int) bool { return g.below(n) == n-1 }

func pick[T any](g *generator, from []T) T { return from[g.below(len(from))] }

// call generates the arguments of an operator, including outs, and its tensor result.
func (g *generator) call(sig *kernels.Signature) (args []any, result *tensor.Tensor) {
	for i := range sig.Args {
		args = append(args, g.argument(&sig.Args[i]))
	}
	if sig.Result != nil && sig.Result.Type == "Tensor" {
		result = g.out()
	}
	return args, result
}

func (g *generator) argument(a *kernels.Arg) any {
	if a.Optional && g.chance(3) {
		return nil
	}
	one := g.tensor
	if a.Out {
		one = g.out
	}
	switch typ := strings.TrimSuffix(a.Type, "?"); typ {
	case "Tensor":
		return one()
	case "Tensor[]", "Tensor?[]":
		list := make([]*tensor.Tensor, g.below(5))
		for i := range list {
			if typ == "Tensor[]" || !g.chance(3) {
				list[i] = one()
			}
		}
		return list
	case "int[]", "SymInt[]":
		return g.ints()
	case "int", "SymInt", "MemoryFormat", "ScalarType":
		return g.integer(a)
	case "float":
		return pick(g, floats)
	case "bool":
		return g.chance(2)
	case "str":
		return pick(g, []string{"none", "tanh", "trunc", "floor", "", "\xff", strings.Repeat("x", 300)})
	case "float[]":
		return g.list(func() float64 { return pick(g, floats) })
	case "bool[]":
		return g.bools()
	}
	return pick(g, []any{1, 2, 0, -1, true, false, 0.5, 2.0, int64(math.MinInt64), int64(math.MaxInt64), 300, -1000,
		math.NaN(), math.Inf(1), 1e300, -1e-300})
}

var floats = []float64{1, 0.5, 2, 0, -1, 1e-5, math.Copysign(0, -1), 0.1, math.NaN(), math.Inf(1), math.Inf(-1),
	math.MaxFloat64, 1e-320, -3.5, 1e20}

func (g *generator) list(one func() float64) []float64 {
	l := make([]float64, g.below(4))
	for i := range l {
		l[i] = one()
	}
	return l
}

func (g *generator) bools() []bool {
	l := make([]bool, g.below(5))
	for i := range l {
		l[i] = g.chance(2)
	}
	return l
}

var extremes = []int64{math.MinInt64, math.MaxInt64, math.MinInt64 + 1, 1 << 31, -1 << 31, 1 << 32, 1 << 40, 1 << 56, 1 << 62, -1 << 62, 1 << 20, 256, -129}

func (g *generator) integer(a *kernels.Arg) int64 {
	switch {
	case g.chance(8):
		return pick(g, extremes)
	case strings.Contains(a.Name, "dtype"):
		if g.chance(2) {
			return int64(g.dtype)
		}
		return int64(g.below(40)) - 4
	}
	return int64(g.below(9)) - 3
}

// ints generates an int[]: sizes, a permutation, small numbers, or invalid values.
func (g *generator) ints() []int64 {
	n := len(g.sizes)
	l := make([]int64, 0, 8)
	switch g.below(6) {
	case 0:
		for _, s := range g.sizes {
			l = append(l, int64(s))
		}
	case 1:
		for _, d := range rand.New(rand.NewPCG(uint64(g.byte()), 0)).Perm(n) {
			l = append(l, int64(d))
		}
	case 2: // one or two small positive numbers, as for a window
		for range 1 + g.below(2) {
			l = append(l, int64(1+g.below(3)))
		}
	case 3:
		for range n {
			l = append(l, int64(g.below(4)))
		}
	case 4:
		for range g.below(8) {
			l = append(l, int64(g.below(7)-3))
		}
	default:
		for range pick(g, []int{0, 1, 2, 3, 4, 5, 6, 17, 40}) {
			l = append(l, pick(g, extremes)+int64(g.below(3)))
		}
	}
	return l
}

// shape generates sizes of the given rank with at most maxElements elements.
func (g *generator) shape(rank int) []int {
	sizes := make([]int, rank)
	for i := range sizes {
		sizes[i] = pick(g, []int{1, 2, 3, 4, 5, 6, 8, 2, 3, 4, 1, 17, 0, 2, 3, 2})
	}
	return capped(sizes)
}

func capped(sizes []int) []int {
	for i := 0; ; i++ {
		if n, ok := tensor.Product(sizes); ok && n <= maxElements {
			return sizes
		}
		sizes[i%len(sizes)] = 2 - i/len(sizes)
	}
}

// relative generates sizes related to those of the call.
func (g *generator) relative() []int {
	s := slices.Clone(g.sizes)
	n := len(s)
	switch how := g.below(16); {
	case how < 7:
	case how == 7 && n > 0:
		s[g.below(n)] = 1
	case how == 8 && n > 1:
		s[n-1], s[n-2] = s[n-2], s[n-1]
	case how == 9 && n > 1:
		s = s[1:]
	case how == 10 && n > 0:
		s = s[n-1:]
	case how == 11 && n > 1:
		s = s[1:2]
	case how == 12:
		s = nil
	case how == 13:
		s = []int{1}
	case how == 14 && n > 0:
		s[g.below(n)] = pick(g, []int{0, 1 << (bits.UintSize * 5 / 8), 1 << (bits.UintSize/2 - 1)})
		s[g.below(n)] = 0
	default:
		s = g.shape(g.below(6))
	}
	return capped(s)
}

// tensor generates a filled input.
func (g *generator) tensor() *tensor.Tensor {
	d := g.dtype
	switch g.below(8) {
	case 4:
		d = tensor.Int64
	case 5:
		d = tensor.Bool
	case 6:
		d = pick(g, allTypes)
	case 7:
		d = pick(g, usualTypes)
	}
	sizes := g.relative()
	t := tensor.Make(d, sizes, g.order(len(sizes)), tensor.Static)
	t.Const = g.chance(4)
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	g.fill(t)
	return t
}

// out generates an out: mostly of the call's type and sizes, sometimes with capacity for other
// sizes.
func (g *generator) out() *tensor.Tensor {
	d := pick(g, []tensor.DType{g.dtype, g.dtype, g.dtype, g.dtype, tensor.Float32, tensor.Int64, tensor.Bool, pick(g, allTypes)})
	sizes := g.relative()
	t := tensor.Make(d, sizes, g.order(len(sizes)), pick(g, []tensor.Dynamism{tensor.Static, tensor.DynamicBound, tensor.DynamicBound, tensor.DynamicUnbound}))
	if t.Dynamism != tensor.Static {
		t.Limit(t.Numel() + 16*g.below(256))
	}
	return t
}

// order returns a dim order: mostly contiguous, else channels last or any.
func (g *generator) order(rank int) []uint8 {
	if !g.chance(5) || rank < 2 {
		return nil
	}
	o := tensor.ContiguousOrder(rank)
	if g.chance(3) {
		r := rand.New(rand.NewPCG(uint64(g.byte()), 0))
		r.Shuffle(rank, func(i, j int) { o[i], o[j] = o[j], o[i] })
		return o
	}
	return append(append(o[:1], o[2:]...), 1)
}

// fill fills a tensor: mostly with small numbers, and with special values.
func (g *generator) fill(t *tensor.Tensor) {
	r := rand.New(rand.NewPCG(uint64(g.byte()), 7))
	hard := g.chance(3)
	size := t.DType.Size()
	for i := range t.Numel() {
		b := t.Data[i*size : (i+1)*size]
		switch {
		case kernels.Epsilon(t.DType) > 0:
			fillFloat(b, t.DType, r, hard)
		case hard && r.IntN(8) == 0 || !t.DType.IsInt():
			for j := range b {
				b[j] = byte(r.Uint32())
			}
			if t.DType == tensor.Bool && !hard {
				b[0] &= 1
			}
		default:
			var v [8]byte
			binary.LittleEndian.PutUint64(v[:], uint64(r.Int64N(9)-int64(r.IntN(2))))
			copy(b, v[:size])
		}
	}
}

func fillFloat(b []byte, d tensor.DType, r *rand.Rand, hard bool) {
	real := d
	switch d {
	case tensor.Complex32:
		real = tensor.Float16
	case tensor.Complex64:
		real = tensor.Float32
	case tensor.Complex128:
		real = tensor.Float64
	}
	v := []float64{r.NormFloat64(), r.NormFloat64()}
	if hard && r.IntN(4) == 0 {
		v[0] = floats[r.IntN(len(floats))]
	}
	tensor.Storer[float64](real)(b, v[:d.Size()/real.Size()])
}
