package lower

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// putOp is the operator that an index_put of state becomes.
const putOp = "aten::index_put_"

// dropOverwritten removes an index_put that writes each element once, in order, so that nothing of its first operand is left: its result
// becomes a view of the new elements. Exporters store the keys and values of an encoder's result so, in every call of the decoder.
func dropOverwritten(p *pass, i int) bool {
	args := p.m.Steps[i].Args
	self, values, accumulate, out := args[0], args[2], args[3], args[4]
	if p.m.Values[accumulate].Scalar().Bool || !p.alike(self, out) || !p.alike(values, out) || p.m.Values[values].Tensor.Const ||
		!p.indexesAll(p.m.Values[args[1]].Items(), out) {
		return false
	}
	d := p.definition(i, values)
	if !p.maySwap(d, values, out) {
		return false
	}
	p.swap(d, i)
	return true
}

// indexesAll reports whether indices are one constant: 0, 1, … along a dimension of out.
func (p *pass) indexesAll(indices []int, out int) bool {
	given := func(v int) bool { return v >= 0 && p.m.Values[v].Kind == tensor.KindTensor }
	dim := slices.IndexFunc(indices, given)
	if dim < 0 || slices.ContainsFunc(indices[dim+1:], given) {
		return false
	}
	sizes, x := p.m.Values[out].Tensor.Sizes, &p.m.Values[indices[dim]]
	if t := x.Tensor; dim >= len(sizes) || !t.Const || t.DType != tensor.Int64 || !slices.Equal(t.Sizes, sizes[dim:dim+1]) {
		return false
	}
	for k, at := range tensor.View[int64](p.m.Storages[x.Storage].Data)[:sizes[dim]] {
		if at != int64(k) {
			return false
		}
	}
	return true
}

// putInPlace lets an index_put write to state, if its result is later assigned to that state: exporters write updates of caches so. The
// values of the result become views of the state.
func putInPlace(p *pass, i int) bool {
	args := p.m.Steps[i].Args
	self, values, out := args[0], args[2], args[4]
	a, b := p.m.Values[self].Storage, p.m.Values[out].Storage
	def, made := &p.flow.Defs[p.definition(i, self)], &p.flow.Defs[p.flow.Steps[i].Makes[0]]
	if !p.mayJoin(a, b, out) || !p.alike(self, out) || p.in(a, values) || p.in(a, p.m.Values[args[1]].Items()...) ||
		def.Step != ir.Entry || def.Next == ir.None || made.Live {
		return false
	}
	j := p.flow.Defs[def.Next].Step
	assign := &p.m.Steps[j]
	if j < i || p.changed[j] || !assign.IsCopy() || !fits(p.m, assign) || p.m.Values[assign.Args[1]].Storage != b ||
		!p.alike(assign.Args[0], out) || !p.alike(assign.Args[1], out) {
		return false
	}
	for _, u := range def.Uses { // the content before
		if u.Step > i && u.Step != j {
			return false
		}
	}
	if !p.call(i, putOp, self, args[1], values, args[3], self) {
		return false
	}
	p.change().Join(a, b)
	p.joined[a], p.merged[b] = true, true
	p.drop(j)
	p.record(0, i)
	return true
}

// in reports whether one of the values is in a storage.
func (p *pass) in(storage int, values ...int) bool {
	return slices.ContainsFunc(values, func(v int) bool { return v >= 0 && p.m.Values[v].Storage == storage })
}

// mayJoin reports whether the values of storage b, that of out, which one step writes, can be views of state a, which one other step writes.
func (p *pass) mayJoin(a, b, out int) bool {
	from, to, n := &p.m.Storages[b], &p.m.Storages[a], p.m.Values[out].Tensor.NBytes()
	return to.Kind == ir.State && from.Kind == ir.Activation && !from.Output && !to.Output && n > 0 && n == from.Bytes && n == to.Bytes &&
		len(p.writers[a]) == 1 && len(p.writers[b]) == 1 && p.shape[a].static && p.shape[b].static && !p.joined[a] && !p.joined[b]
}
