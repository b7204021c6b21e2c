package ir

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// access holds the steps at which a value is first read and first written, or never.
type access struct {
	read, write int
	contents    bool // its elements are read, not only its sizes
	update      bool // a step changes it in place,
	part        bool // and keeps some of its elements
	// The last steps that read it: to copy it onto another tensor in place, and others; -1 for none.
	source, last int
}

const never = int(^uint(0) >> 1)

// addStorages joins the values that share bytes and classifies the storages.
func (b *builder) addStorages() error {
	join := newForest(len(b.Values))
	if err := b.joinViews(join); err != nil {
		return err
	}
	if err := b.joinElidedViews(b.accesses(), join); err != nil {
		return err
	}
	if err := b.redirectCopies(join); err != nil {
		return err
	}
	if err := b.addRelays(); err != nil {
		return err
	}
	if err := b.checkPlaces(); err != nil {
		return err
	}
	b.collect(join)
	for i := range b.Storages {
		b.classify(&b.Storages[i])
	}
	for _, v := range b.Inputs {
		if s := b.Values[v].Storage; s >= 0 && b.Storages[s].Kind == Activation {
			b.Storages[s].Kind = Input
		}
	}
	for _, v := range b.tensors(nil, b.Outputs...) {
		b.Storages[b.Values[v].Storage].Output = true
	}
	b.findUnwritten()
	return nil
}

// joinViews joins the results of views with their operands. A value that is a view of two tensors
// would merge their storages.
func (b *builder) joinViews(join *forest) error {
	views := make([]bool, len(b.Values))
	for i := range b.Steps {
		s := &b.Steps[i]
		if !s.IsView() || len(s.Reads) == 0 || len(s.Writes) == 0 {
			continue
		}
		from, to := s.Reads[0], s.Writes[0]
		if views[to] && join.find(from) != join.find(to) {
			return b.stepError(s, fmt.Errorf("value %d, a view of value %d, is a view of another tensor too: %w", to, from, pte.ErrUnsupported))
		}
		views[to] = true
		join.union(from, to)
	}
	return nil
}

// collect makes a storage of each set of joined tensors. The root of a set is its first value.
func (b *builder) collect(join *forest) {
	classes, members := 0, make([]int, 0, len(b.Values))
	for v := range b.Values {
		if b.Values[v].Kind == tensor.KindTensor && join.find(v) == v {
			classes++
		}
	}
	b.Storages = make([]Storage, 0, classes)
	for v := range b.Values {
		if b.Values[v].Kind != tensor.KindTensor {
			continue
		}
		root := join.find(v)
		if root == v {
			b.Values[v].Storage = len(b.Storages)
			members = append(members, v)
			n := len(members)
			b.Storages = append(b.Storages, Storage{Values: members[n-1 : n : n], Bytes: b.bytes(v)})
			continue
		}
		b.Values[v].Storage = b.Values[root].Storage
		s := &b.Storages[b.Values[v].Storage]
		s.Values = append(s.Values, v)
		s.Bytes = max(s.Bytes, b.bytes(v))
	}
}

// checkPlaces refuses values outside their arenas, except views that steps make.
func (b *builder) checkPlaces() error {
	views := b.Views()
	for v := range b.Values {
		if b.isOutside(v) && !views[v] {
			t := b.src.Values[v].Tensor
			return fmt.Errorf("value %d: %d bytes at offset %d, planned buffer %d has %d: %w",
				v, t.NBytes(), t.Offset, t.Arena+1, b.Arenas[t.Arena], pte.ErrFormat)
		}
	}
	return nil
}

// isOutside reports whether the file's place of a value ends outside its arena.
func (b *builder) isOutside(v int) bool {
	if !b.isPlanned(v) {
		return false
	}
	t := b.src.Values[v].Tensor
	return t.Arena < len(b.Arenas) && t.NBytes() > b.Arenas[t.Arena]-t.Offset
}

// bytes returns the bytes that a value needs of its storage. A view outside its arena is bounded by the
// value that it is a view of.
func (b *builder) bytes(v int) int64 {
	if b.isOutside(v) {
		return 0
	}
	return b.Values[v].Tensor.NBytes()
}

// classify sets a storage's kind from the file's declaration of its members; setLifetimes finds
// state that only its use reveals.
func (b *builder) classify(s *Storage) {
	for _, v := range s.Values {
		t := b.src.Values[v].Tensor
		switch {
		case s.Kind == Constant:
		case t.Storage == pte.Constant || t.Storage == pte.External:
			s.Kind, s.Data = Constant, b.data(v)
		case s.Kind == State:
		case t.Storage == pte.PlannedInit || t.Storage == pte.ExternalPlanned || t.Storage == pte.Planned && b.links.Data[v] != nil:
			s.Kind, s.Data = State, b.data(v)
		case t.Dynamism == tensor.DynamicUnbound:
			s.Kind = Heap
		}
	}
	if first := b.src.Values[s.Values[0]].Tensor; Placed(first) && !b.relaid[s.Values[0]] {
		s.Planned, s.Arena, s.Offset = true, first.Arena, first.Offset
	}
}

// data returns the initial bytes of a value.
func (b *builder) data(v int) []byte {
	if data, ok := b.links.Data[v]; ok {
		return data
	}
	return b.src.Values[v].Tensor.Data
}

func (b *builder) accesses() []access {
	acc := make([]access, len(b.Values))
	for v := range acc {
		acc[v] = access{read: never, write: never, source: -1, last: -1}
	}
	var contents []int
	for i := range b.Steps {
		s := &b.Steps[i]
		contents = b.contentsRead(s, contents[:0])
		for _, v := range contents {
			acc[v].contents = true
		}
		for _, v := range s.Reads {
			if s.isScratch(v) {
				continue
			}
			acc[v].read = min(acc[v].read, i)
			if s.IsCopy() && len(s.Args) > 1 && v == s.Args[1] {
				acc[v].source = i
			} else {
				acc[v].last = i
			}
		}
		for _, v := range s.Updates {
			acc[v].write, acc[v].update = min(acc[v].write, i), true
			if !s.fills() {
				acc[v].read, acc[v].part = min(acc[v].read, i), true
			}
		}
		for _, v := range s.Writes {
			acc[v].write = min(acc[v].write, i)
		}
	}
	for _, v := range b.Inputs {
		acc[v].write = -1
	}
	return acc
}

func (b *builder) isPlanned(v int) bool {
	return v < len(b.src.Values) && b.Values[v].Kind == tensor.KindTensor && b.src.Values[v].Tensor.Storage == pte.Planned
}

// forest is a union-find over values; the smaller root wins.
type forest struct{ parent []int }

func newForest(n int) *forest {
	f := &forest{make([]int, n)}
	for i := range f.parent {
		f.parent[i] = i
	}
	return f
}

func (f *forest) find(v int) int {
	for f.parent[v] != v {
		f.parent[v] = f.parent[f.parent[v]]
		v = f.parent[v]
	}
	return v
}

func (f *forest) union(a, b int) {
	a, b = f.find(a), f.find(b)
	f.parent[max(a, b)] = min(a, b)
}
