package lower

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// longestChain is the largest number of movements that are examined together.
const longestChain = 3

// dropIdentity removes a movement whose result has the bytes of its operand, or the bytes that an
// earlier movement reads and this one restores. The values of the result become views of these.
func dropIdentity(p *pass, i int) bool {
	steps := make([]int, 0, longestChain)
	y := p.m.Steps[i].Writes
	for at := i; len(steps) < longestChain; {
		x, ok := p.moved(at)
		if !ok || len(y) != 1 {
			return false
		}
		steps = append(steps, at)
		d := p.definition(at, x)
		if p.maySwap(d, x, y[0]) && p.isIdentity(steps, x, y[0]) {
			p.swap(d, i)
			return true
		}
		if at = p.flow.Defs[d].Step; at == ir.Entry {
			return false
		}
	}
	return false
}

// moved returns the one tensor that a movement reads in addition to constants.
func (p *pass) moved(i int) (x int, ok bool) {
	s := &p.m.Steps[i]
	if s.Kind != ir.KernelCall || !s.Op.Moves || p.changed[i] || !p.fits(i) {
		return 0, false
	}
	for _, v := range s.Reads {
		if !p.m.Values[v].Tensor.Const {
			if ok {
				return 0, false
			}
			x, ok = v, true
		}
	}
	return x, ok
}

// maySwap reports whether all values of y's storage, which one step writes, can be views of
// definition d, which has the same bytes as x: sizes are fixed, and the bytes stay unchanged for as
// long as they are read.
func (p *pass) maySwap(d, x, y int) bool {
	def := &p.flow.Defs[d]
	a, b := def.Storage, p.m.Values[y].Storage
	from, to := &p.m.Storages[a], &p.m.Storages[b]
	if a == b || from.Kind > ir.State || to.Kind != ir.Activation || len(p.writers[b]) != 1 || !p.isUntouched(def) {
		return false
	}
	s, t := p.m.Values[x].Tensor, p.m.Values[y].Tensor
	if s.DType != t.DType || s.NBytes() != t.NBytes() || t.NBytes() != to.Bytes || to.Bytes == 0 || !p.shape[a].static || !p.shape[b].static {
		return false
	}
	return (!to.Output || p.mayBeOutput(a, b)) && p.outlasts(def, p.writers[b][0])
}

// mayBeOutput reports whether storage a can replace output b: only this method writes it, it is no
// other output, and a caller's buffer for b also fits a.
func (p *pass) mayBeOutput(a, b int) bool {
	from, to := &p.m.Storages[a], &p.m.Storages[b]
	return from.Kind == ir.Activation && !from.Output && !p.joined[a] && from.Bytes == to.Bytes && p.shape[a].alignment == p.shape[b].alignment
}

// isUntouched reports whether no rewrite of this round replaced a definition.
func (p *pass) isUntouched(def *ir.Def) bool {
	return !p.merged[def.Storage] && (def.Step == ir.Entry || !p.changed[def.Step])
}

// outlasts reports whether a definition is valid wherever its copy, made by step i as the only
// writer of its storage, is read. If the copy is read in other blocks, the definition must also be
// the only one of its storage: it is then made before step i on every path.
func (p *pass) outlasts(def *ir.Def, i int) bool {
	made := &p.flow.Defs[p.flow.Steps[i].Makes[0]]
	if made.Live {
		writers := len(p.writers[def.Storage])
		return writers == 0 || writers == 1 && p.m.Storages[def.Storage].Kind == ir.Activation
	}
	if n := len(made.Uses); n > 0 {
		i = made.Uses[n-1].Step
	}
	return def.Next == ir.None || i < p.flow.Defs[def.Next].Step
}

// swap drops step i and lets the readers of its result read definition d.
func (p *pass) swap(d, i int) {
	a, b := p.flow.Defs[d].Storage, p.m.Values[p.m.Steps[i].Writes[0]].Storage
	p.change().Join(a, b)
	p.joined[a], p.merged[b] = true, true
	p.drop(i)
}

// isIdentity reports whether steps, the last one first, copy the bytes of x to y unchanged. It
// executes them on distinct elements, once for all equal chains, unless a permutation clearly does not.
func (p *pass) isIdentity(steps []int, x, y int) bool {
	if len(steps) == 1 {
		if order := p.permuted(steps[0]); order != nil && !p.keepsOrder(order, x) {
			return false
		}
	}
	t := p.tried
	t.key = binary.AppendVarint(t.key[:0], p.m.Storages[p.m.Values[x].Storage].Bytes)
	for _, i := range steps {
		t.key = append(t.key, p.m.Steps[i].Op.Schema...)
		for _, v := range p.m.Steps[i].Args {
			t.key = p.appendValue(t.key, v)
		}
	}
	same, ok := t.same[string(t.key)]
	if !ok {
		key := string(t.key)
		same = p.tryIdentity(steps, x, y)
		t.same[key] = same
	}
	return same
}

// keepsOrder reports whether a permutation moves only dimensions of x of size 1.
func (p *pass) keepsOrder(order []int, x int) bool {
	sizes := p.m.Values[x].Tensor.Sizes
	return slices.IsSorted(slices.DeleteFunc(order, func(d int) bool { return sizes[d] == 1 }))
}

// appendValue appends what a movement of value v depends on.
func (p *pass) appendValue(key []byte, v int) []byte {
	if v < 0 {
		return append(key, 0xff)
	}
	x := &p.m.Values[v]
	key = append(key, byte(x.Kind))
	switch x.Kind {
	case tensor.KindTensor:
		t := x.Tensor
		key = append(key, byte(t.DType), byte(len(t.Sizes)), byte(len(t.DimOrder)))
		for _, n := range t.Sizes {
			key = binary.AppendVarint(key, int64(n))
		}
		key = append(key, t.DimOrder...)
		if !t.Const {
			return append(key, 0)
		}
		return binary.AppendVarint(append(key, 1), int64(v))
	case tensor.KindInt:
		return binary.AppendVarint(key, x.Int)
	case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
		key = binary.AppendVarint(key, int64(len(x.Items())))
		for _, item := range x.Items() {
			key = p.appendValue(key, item)
		}
		return key
	}
	s := x.Scalar()
	return fmt.Appendf(key, "%v %v %v %v %q", s.Bool, s.Double, s.Bools, s.Doubles, s.Str)
}

func (p *pass) tryIdentity(steps []int, x, y int) bool {
	if !p.keepsElements(steps, x) {
		return false
	}
	t := p.m.Values[x].Tensor
	n, base := int(t.NBytes())/t.DType.Size(), digits(t.DType)
	for place := 1; ; place *= base {
		if !p.tryElements(steps, x, y, p.counted(x, place)) {
			return false
		}
		if (n-1)/place < base { // that was the first digit of the last element
			break
		}
	}
	other := p.counted(x, 1) // a constant that fills in for an element cannot equal both
	flip(other, t.DType)
	defer flip(other, t.DType)
	return p.tryElements(steps, x, y, other)
}

// keepsElements reports whether no step converts elements to a type that has not all of those of x.
func (p *pass) keepsElements(steps []int, x int) bool {
	d := p.m.Values[x].Tensor.DType
	return !slices.ContainsFunc(steps, func(i int) bool {
		return slices.ContainsFunc(p.m.Steps[i].Writes, func(v int) bool { return !represents(p.m.Values[v].Tensor.DType, d) })
	})
}

// represents reports whether each element of type d is one of type wide, too.
func represents(wide, d tensor.DType) bool {
	switch {
	case wide == d:
		return true
	case d.IsFloat():
		return wide.IsFloat() && wide.Epsilon() <= d.Epsilon() && wide.MaxFloat() >= d.MaxFloat()
	case d == tensor.Bool:
		return wide.IsInt() || wide.IsFloat()
	case d.IsInt() && wide.IsInt():
		lo, hi := d.IntRange()
		least, most := wide.IntRange()
		return least <= lo && hi <= most
	case d.IsInt() && wide.IsFloat():
		_, hi := d.IntRange()
		return float64(hi) <= min(2/wide.Epsilon(), wide.MaxFloat())
	}
	return false
}

// tryElements reports whether steps copy the bytes of x in want to y.
func (p *pass) tryElements(steps []int, x, y int, want []byte) bool {
	cost := p.trialBytes(steps, x)
	if cost > maxTrial || cost/8 > p.left.Work {
		return false
	}
	p.left.Work -= cost / 8
	got, ok := p.move(steps, x, y, want)
	return ok && bytes.Equal(got, want[:p.m.Values[x].Tensor.NBytes()])
}

// maxTrial bounds the bytes of the tensors that a trial moves elements through.
const maxTrial = 32 << 20

// trialBytes counts the bytes that steps write, and those of the storage of x.
func (p *pass) trialBytes(steps []int, x int) int64 {
	bytes := p.m.Storages[p.m.Values[x].Storage].Bytes
	for _, i := range steps {
		for _, v := range p.m.Steps[i].Writes {
			bytes = min(bytes, maxTrial) + min(p.m.Values[v].Tensor.NBytes(), maxTrial)
		}
	}
	return bytes
}

// counted returns bytes for the storage of x whose elements are digits of their indexes, at a
// place.
func (p *pass) counted(x, place int) []byte {
	t, size := p.m.Values[x].Tensor, int(p.m.Storages[p.m.Values[x].Storage].Bytes)
	if place > 1 {
		b := tensor.AlignedBytes(size)
		fill(b, t.DType, place)
		return b
	}
	b := p.tried.bytes[t.DType]
	if len(b) < size {
		b = tensor.AlignedBytes(size)
		fill(b, t.DType, 1)
		p.tried.bytes[t.DType] = b
	}
	return b[:size]
}

// move executes steps, the last one first, on the bytes of x, and returns those of y.
func (p *pass) move(steps []int, x, y int, data []byte) (got []byte, ok bool) {
	defer clear(p.bytes)
	p.tried.used = 0
	p.bytes[p.m.Values[x].Storage] = data
	for _, i := range slices.Backward(steps) {
		if !p.execute(i) {
			return nil, false
		}
	}
	return p.bytes[p.m.Values[y].Storage], true
}

// digits returns how many different elements of a type are distinguished.
func digits(d tensor.DType) int {
	if d == tensor.Bool {
		return 2
	}
	return 1 << min(8*d.Size(), 32, bits.UintSize-2)
}

// fill sets element i to the digit of i at a place.
func fill(b []byte, d tensor.DType, place int) {
	size, base := d.Size(), digits(d)
	var digit [4]byte
	n, left := 0, place // the current digit, and how many elements are still to have it
	for i := 0; i+size <= len(b); i += size {
		if left == 0 {
			n, left = n+1, place
			if n == base {
				n = 0
			}
		}
		left--
		binary.LittleEndian.PutUint32(digit[:], uint32(n))
		copy(b[i:i+size], digit[:])
	}
}

// flip changes each element to another one, and back.
func flip(b []byte, d tensor.DType) {
	size, bit := d.Size(), byte(0x40)
	if d == tensor.Bool {
		bit = 1
	}
	for i := size - 1; i < len(b); i += size {
		b[i] ^= bit
	}
}

// neutral is a class of operators, and the number that leaves their first operand unchanged.
type neutral struct {
	class  opclass.Class
	number float64
	alpha  bool // there also is a factor
	either bool // the operands may be exchanged
}

// Adding 0 is not neutral: it changes -0.
var neutrals = []neutral{
	{class: opclass.Mul, number: 1, either: true}, {class: opclass.MulScalar, number: 1},
	{class: opclass.Div, number: 1}, {class: opclass.DivScalar, number: 1},
	{class: opclass.Sub, number: 0, alpha: true},
}

func neutralClasses() (list []opclass.Class) {
	for i := range neutrals {
		list = append(list, neutrals[i].class)
	}
	return list
}

// dropNeutral removes a multiplication by 1 and similar steps.
func dropNeutral(p *pass, i int) bool {
	s := &p.m.Steps[i]
	n := &neutrals[slices.IndexFunc(neutrals, func(n neutral) bool { return n.class == s.Op.Class })]
	args := firstOut(s)
	if !p.isClass(i, n.class) || n.alpha && !p.isNumber(s.Args[2], 1) {
		return false
	}
	x, y := s.Args[0], s.Args[args]
	switch {
	case p.isNumber(s.Args[1], n.number):
	case n.either && p.isNumber(x, n.number):
		x = s.Args[1]
	default:
		return false
	}
	if p.m.Values[x].Tensor.Const || !p.alike(x, y) || !p.maySwap(p.definition(i, x), x, y) {
		return false
	}
	p.swap(p.definition(i, x), i)
	return true
}

// isNumber reports whether v is a number. 0 and -0 are different ones.
func (p *pass) isNumber(v int, want float64) bool {
	n, ok := p.number(v)
	return ok && math.Float64bits(n) == math.Float64bits(want)
}
