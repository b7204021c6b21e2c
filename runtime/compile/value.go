package compile

import (
	"math"
	"slices"

	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

type regionReport = lower.Region

// value returns value v for the result. Its items have numbers already.
func (m *method) value(v int) *tree.Node {
	x := &m.m.Values[v]
	if x.Kind == tensor.KindTensor {
		return m.tensor(v)
	}
	if items := x.Items(); items != nil {
		n := tree.New(listTypes[x.Kind]).With("items", tree.Scalars(m.numbers(items)))
		return evalue(n)
	}
	if v < len(m.from.Values) {
		return nodes(m.plan, "values")[v]
	}
	return evalue(scalarNode(x))
}

// listTypes are the tables of lists of values.
var listTypes = map[tensor.Kind]string{tensor.KindIntList: "IntList", tensor.KindTensorList: "TensorList",
	tensor.KindOptionalTensorList: "OptionalTensorList"}

// scalarNode returns the table of a value that a pass has added.
func scalarNode(x *ir.Value) *tree.Node {
	s := x.Scalar()
	switch x.Kind {
	case tensor.KindInt:
		return tree.New("Int").With("int_val", tree.Scalar(s.Int))
	case tensor.KindDouble:
		return tree.New("Double").With("double_val", tree.Scalar(math.Float64bits(s.Double)))
	case tensor.KindBool:
		return tree.New("Bool").With("bool_val", bit(s.Bool))
	case tensor.KindString:
		return tree.New("String").With("string_val", s.Str)
	case tensor.KindIntList:
		return tree.New("IntList").With("items", []tree.Scalar{})
	}
	return tree.New("Null")
}

func bit(b bool) tree.Scalar {
	if b {
		return 1
	}
	return 0
}

// tensor returns a tensor with its bytes, or its place in the new plan.
func (m *method) tensor(v int) *tree.Node {
	x := &m.m.Values[v]
	s := &m.m.Storages[x.Storage]
	var n *tree.Node
	from := pte.Planned
	if v < len(m.from.Values) {
		n, from = copied(nodes(m.plan, "values")[v]), m.from.Values[v].Tensor.Storage
		n.With("val", copied(n.Fields["val"].(*tree.Node)))
	} else {
		n = tensorNode(x.Tensor.DType, x.Tensor.Sizes, x.Tensor.DimOrder)
	}
	t := n.Fields["val"].(*tree.Node)
	switch {
	case from == pte.External:
		return n
	case x.Tensor.Const && !m.views[v]: // a view gets its bytes from a step
		t.With("shape_dynamism", tree.Scalar(tensor.Static))
		return m.constant(n, s.Data[:x.Tensor.NBytes()])
	case from == pte.Unplanned && !x.Tensor.Const:
		return n
	}
	delete(t.Fields, "allocation_info")
	if x.Tensor.NBytes() > s.Bytes { // a view, whose bound is that of its operand
		return n
	}
	if s.Kind == ir.State && m.arenas.kept(s) {
		t.With("allocation_info", allocation(s.Arena, s.Offset))
		return n
	}
	if offset, ok := m.arenas.offset(x.Storage); ok {
		t.With("allocation_info", allocation(0, offset))
	}
	return n
}

// allocation returns a place in an arena.
func allocation(arena int, offset int64) *tree.Node {
	return tree.New("AllocationDetails").With("memory_id", tree.Scalar(arena+firstOffset)).
		With("memory_offset_low", tree.Scalar(uint32(offset))).With("memory_offset_high", tree.Scalar(offset>>32))
}

// arenas are the planned buffers of a method. The first one is planned here. The others have only state, whose places are
// those of the original program: methods may share them.
type arenas struct {
	sizes  []int64 // with the reserved one
	places []int64 // by storage, in the first arena; none if it has no place there
}

func (a *arenas) kept(s *ir.Storage) bool { return s.Planned && s.Arena > 0 }

func (a *arenas) offset(storage int) (int64, bool) {
	return a.places[storage], a.places[storage] != none
}

func (a *arenas) bytes() (n int64) {
	for _, size := range a.sizes {
		n += size
	}
	return n
}

const (
	readBehind  = 64 // bytes behind the end of a tensor that kernels of XNNPACK may read
	firstOffset = 1  // number of the first arena in the file
)

// unplanned reports whether inputs or outputs, and all values that share their bytes, have no place in the original program: they get none.
func (m *method) unplanned(values []int) bool {
	return !slices.ContainsFunc(values, func(v int) bool {
		s := m.m.Values[v].Storage
		return s >= 0 && slices.ContainsFunc(m.m.Storages[s].Values, func(v int) bool {
			return v >= len(m.from.Values) || m.from.Values[v].Tensor.Storage == pte.Planned
		})
	})
}

// place lays out the planned buffers.
func (m *method) place() arenas {
	p := plan.Make(m.m, nil, nil, plan.Options{Mode: plan.Own, Aliases: true,
		BoundInputs: m.unplanned(m.m.Inputs), BoundOutputs: m.unplanned(m.m.Outputs)})
	a := arenas{sizes: []int64{0, p.Size()}, places: slices.Repeat([]int64{none}, len(m.m.Storages))}
	for i := range m.m.Storages {
		s := &m.m.Storages[i]
		switch {
		case s.Kind == ir.State && a.kept(s):
			for len(a.sizes) <= s.Arena+firstOffset {
				a.sizes = append(a.sizes, 0)
			}
			a.sizes[s.Arena+firstOffset] = m.from.Arenas[s.Arena].Size
		case s.Kind == ir.State && len(s.Values) > 0:
			at := pack.Align(a.sizes[1], pack.Alignment)
			a.places[i], a.sizes[1] = at, at+s.Bytes
		case p.Placed[i]:
			a.places[i] = p.Places[i].Offset
		}
	}
	for i, is := range m.feedsDelegate(&a) {
		if is {
			a.sizes[i] = pack.Align(a.sizes[i], pack.Alignment) + readBehind
		}
	}
	return a
}

// feedsDelegate reports for each planned buffer whether an argument of a delegate is in it.
func (m *method) feedsDelegate(a *arenas) []bool {
	feeds := make([]bool, len(a.sizes))
	for i := range m.m.Steps {
		if m.m.Steps[i].Kind != ir.DelegateCall {
			continue
		}
		for _, v := range m.m.Steps[i].Args {
			if v < 0 || m.m.Values[v].Storage < 0 {
				continue
			}
			x := m.m.Values[v].Storage
			if s := &m.m.Storages[x]; s.Kind == ir.State && a.kept(s) {
				feeds[s.Arena+firstOffset] = true
			} else if a.places[x] != none {
				feeds[firstOffset] = true
			}
		}
	}
	return feeds
}
