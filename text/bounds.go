package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// bound is the number of values that a tensor has a place for, of those that a method uses as indices into it.
type bound struct {
	most   int // 0 for no bound
	tensor string
}

// lower keeps the smaller bound.
func (b *bound) lower(other bound) {
	if other.most > 0 && (b.most == 0 || other.most < b.most) {
		*b = other
	}
}

// indexer is an operator that indexes a dimension of a tensor by numbers.
type indexer struct {
	op, table string
	dim       string // the argument of the dimension, empty for fixed, "each" for a list of indices, one per dimension
	fixed     int
	indices   []string
}

// indexers are compared with the beginning of an operator's name, up to the overload.
var indexers = []indexer{
	{"llama::update_cache", "cache", "", 1, []string{"start_pos"}},
	{"llama::sdpa_with_kv_cache", "key_cache", "", 1, []string{"start_pos"}},
	{"llama::custom_sdpa", "key", "", 1, []string{"start_pos"}},
	{"aten::slice_copy", "self", "dim", 0, []string{"start", "end"}},
	{"aten::slice_scatter", "self", "dim", 0, []string{"start", "end"}},
	{"aten::narrow_copy", "self", "dim", 0, []string{"start"}},
	{"aten::select_copy", "self", "dim", 0, []string{"index"}},
	{"aten::select_scatter", "self", "dim", 0, []string{"index"}},
	{"aten::index_select", "self", "dim", 0, []string{"index"}},
	{"aten::gather", "self", "dim", 0, []string{"index"}},
	{"aten::index", "self", "each", 0, []string{"indices"}},
	{"aten::index_put", "self", "each", 0, []string{"indices"}},
	{"aten::index_put_", "self", "each", 0, []string{"indices"}},
	{"aten::embedding", "weight", "", 0, []string{"indices"}},
	{"quantized_decomposed::embedding_byte", "weight", "", 0, []string{"indices"}},
	{"quantized_decomposed::embedding_4bit", "weight", "", 0, []string{"indices"}},
	{"quantized_decomposed::embedding_2bit", "weight", "", 0, []string{"indices"}},
}

// copies are the operators whose results are their numbers, or these plus others that are not negative.
var copies = []string{
	"aten::_local_scalar_dense", "aten::copy", "aten::select_copy", "aten::slice_copy", "aten::view_copy", "aten::squeeze_copy",
	"aten::unsqueeze_copy",
	"aten::expand_copy", "aten::clone", "aten::_to_copy", "aten::alias_copy", "aten::permute_copy", "aten::repeat", "aten::add",
	"aten::arange",
	"executorch_prim::et_view", "executorch_prim::add", "dim_order_ops::_to_dim_order_copy", "dim_order_ops::_clone_dim_order",
}

// boundOf returns the bound of the numbers in values: the smallest dimension of constants and state that they index.
func boundOf(m *ir.Method, values ...int) (b bound) {
	t := tracer{m, make(map[int]int)}
	for _, v := range values {
		t.added[t.key(v)] = 0
	}
	for i := range m.Steps {
		s := &m.Steps[i]
		switch s.Kind {
		case ir.MoveCall:
			t.copy(s.Args[0], s.Args[1], 0)
		case ir.KernelCall:
			if !s.Own {
				b.lower(t.indexed(s))
				t.follow(s)
			}
		}
	}
	return b
}

// counters returns the state that may count the tokens of the text.
func counters(m *ir.Method) (list []int) {
	for i := range m.Storages {
		s := &m.Storages[i]
		if s.Kind != ir.State || len(s.Values) == 0 {
			continue
		}
		x := m.Values[s.Values[0]].Tensor
		if n, _ := tensor.Product(x.Sizes); n == 1 && (x.DType == tensor.Int64 || x.DType == tensor.Int32) {
			list = append(list, s.Values[0])
		}
	}
	return list
}

// tracer knows the values that contain the numbers of an input, and what was added to them.
type tracer struct {
	m     *ir.Method
	added map[int]int // by key
}

// key identifies the numbers of a value: tensors of one storage share them.
func (t *tracer) key(v int) int {
	if x := &t.m.Values[v]; x.Kind == tensor.KindTensor && x.Storage >= 0 {
		return -1 - x.Storage
	}
	return v
}

func (t *tracer) copy(from, to, added int) {
	if n, ok := t.added[t.key(from)]; ok && t.isInteger(to) {
		t.added[t.key(to)] = n + added
	}
}

func (t *tracer) isInteger(v int) bool {
	x := &t.m.Values[v]
	return x.Kind != tensor.KindTensor || x.Tensor.DType == tensor.Int64 || x.Tensor.DType == tensor.Int32
}

// base returns the name of a step's operator without its overload.
func base(s *ir.Step) string {
	name, _, _ := strings.Cut(s.Op.Name(), ".")
	return name
}

// follow notes the results of a step that copies numbers.
func (t *tracer) follow(s *ir.Step) {
	copied := slices.Contains(copies, base(s))
	added := 0
	if strings.HasSuffix(base(s), "::add") {
		added = t.constants(s)
	}
	for i, v := range s.Args {
		if i < len(s.Sig.Args) && !s.Sig.Args[i].Out {
			continue
		}
		n, ok := 0, false
		for k := range s.Sig.Args {
			if copied && !s.Sig.Args[k].Out && !ok {
				n, ok = t.added[t.key(s.Args[k])]
			}
		}
		delete(t.added, t.key(v)) // written again
		if ok && t.isInteger(v) {
			t.added[t.key(v)] = n + added
		}
	}
}

// constants returns what a sum adds to its numbers.
func (t *tracer) constants(s *ir.Step) (sum int) {
	for k := range s.Sig.Args[:min(2, len(s.Sig.Args))] {
		if x := &t.m.Values[s.Args[k]]; x.Kind == tensor.KindInt && !x.Changes && x.Int > 0 {
			sum += int(x.Int)
		}
	}
	return sum
}

// argument returns the value of a named argument, -1 for none.
func argument(s *ir.Step, name string) int {
	for i := range s.Sig.Args {
		if s.Sig.Args[i].Name == name {
			return s.Args[i]
		}
	}
	return -1
}

// indexed returns the bound of a step.
func (t *tracer) indexed(s *ir.Step) (b bound) {
	at := slices.IndexFunc(indexers, func(x indexer) bool { return x.op == base(s) })
	if at < 0 {
		return b
	}
	x := &indexers[at]
	table := argument(s, x.table)
	if table < 0 || !t.keeps(table) {
		return b
	}
	for _, name := range x.indices {
		index := argument(s, name)
		if index < 0 {
			continue
		}
		if x.dim == "each" {
			for dim, v := range t.m.Values[index].Items() {
				b.lower(t.boundAt(s, table, dim, v))
			}
			continue
		}
		dim := x.fixed
		if d := argument(s, x.dim); d >= 0 {
			dim = int(t.m.Values[d].Int)
		}
		b.lower(t.boundAt(s, table, dim, index))
	}
	return b
}

// keeps reports whether a tensor has the same size in each run: it is a constant or state.
func (t *tracer) keeps(v int) bool {
	x := &t.m.Values[v]
	if x.Kind != tensor.KindTensor || x.Storage < 0 || x.Tensor.Dynamism != tensor.Static {
		return false
	}
	k := t.m.Storages[x.Storage].Kind
	return isConstant(k) || k == ir.State
}

// boundAt returns the bound of a dimension of a tensor that a value indexes.
func (t *tracer) boundAt(s *ir.Step, table, dim, index int) (b bound) {
	if index < 0 {
		return b
	}
	added, ok := t.added[t.key(index)]
	x := t.m.Values[table].Tensor
	if dim < 0 {
		dim += len(x.Sizes)
	}
	if !ok || dim < 0 || dim >= len(x.Sizes) {
		return b
	}
	name := fmt.Sprintf("%.100q", x.Name)
	if x.Name == "" {
		name = fmt.Sprintf("of instruction %d (%s)", s.Origin.Index, s.Op.Name())
	}
	return bound{max(x.Sizes[dim]-added, 1), fmt.Sprintf("tensor %s of sizes %s", name, tensor.FormatSizes(x.Sizes))}
}
