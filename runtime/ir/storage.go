package ir

import (
	"cmp"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// access is when a value is first read and first written, as steps; never where it
// is not at all.
type access struct{ read, write int }

const never = int(^uint(0) >> 1)

// addStorages joins the values that share bytes and classifies the classes.
func (f *Flow) addStorages() {
	join := newForest(len(f.Method.Values))
	for i := range f.Steps {
		if from, to, ok := f.Steps[i].alias(); ok {
			join.union(from, to)
		}
	}
	f.joinElidedViews(f.accesses(), join)
	f.collect(join)
	for i := range f.Storages {
		f.Storages[i].Kind = f.classify(&f.Storages[i])
	}
	for _, v := range f.Method.Inputs {
		if s := f.Of[v]; s >= 0 && f.Storages[s].Kind == Activation {
			f.Storages[s].Kind = Input
		}
	}
	for _, v := range f.Method.Outputs {
		f.markOutput(v)
	}
}

// collect makes a storage of each class of tensors.
func (f *Flow) collect(join *forest) {
	f.Of = make([]int, len(f.Method.Values))
	index := make(map[int]int)
	for v := range f.Method.Values {
		f.Of[v] = -1
		if f.Method.Values[v].Kind != tensor.KindTensor {
			continue
		}
		root := join.find(v)
		s, ok := index[root]
		if !ok {
			s = len(f.Storages)
			index[root] = s
			f.Storages = append(f.Storages, Storage{})
		}
		f.Of[v] = s
		f.Storages[s].Values = append(f.Storages[s].Values, v)
		f.Storages[s].Bytes = max(f.Storages[s].Bytes, f.Method.Values[v].Tensor.NBytes())
	}
}

func (f *Flow) markOutput(v int) {
	for _, v := range tensors(f.Method, nil, v) {
		f.Storages[f.Of[v]].Output = true
	}
}

// classify looks at what the file says of a class's members; state that only its
// use reveals is found by setLifetimes.
func (f *Flow) classify(s *Storage) Kind {
	kind := Activation
	for _, v := range s.Values {
		t := f.Method.Values[v].Tensor
		switch {
		case t.Storage == pte.Constant || t.Storage == pte.External:
			return Constant
		case t.Storage == pte.PlannedInit || t.Storage == pte.ExternalPlanned:
			kind = State
		case t.Dynamism == tensor.DynamicUnbound && kind == Activation:
			kind = Heap
		}
	}
	return kind
}

func (f *Flow) accesses() []access {
	acc := make([]access, len(f.Method.Values))
	for v := range acc {
		acc[v] = access{never, never}
	}
	for i := range f.Steps {
		s := &f.Steps[i]
		for _, v := range s.Reads {
			acc[v].read = min(acc[v].read, i)
		}
		for _, v := range s.Updates {
			acc[v].read, acc[v].write = min(acc[v].read, i), min(acc[v].write, i)
		}
		for _, v := range s.Writes {
			acc[v].write = min(acc[v].write, i)
		}
	}
	for _, v := range f.Method.Inputs {
		acc[v].write = -1
	}
	return acc
}

// alias reports an instruction whose result shares its first argument's bytes:
// executorch_prim::et_view, the only one there is.
func (s *Step) alias() (from, to int, ok bool) {
	if !s.view || len(s.Reads) == 0 || len(s.Writes) == 0 {
		return 0, 0, false
	}
	return s.Reads[0], s.Writes[0], true
}

// spot is where and how large the file says a value is.
type spot struct {
	arena         int
	offset, bytes int64
}

func spotOf(t *pte.Tensor) spot { return spot{t.Arena, t.Offset, t.NBytes()} }

// joinElidedViews finds values that no instruction writes though they are read: the
// exporter dropped a view and gave its result the place of the operand. Such a
// value belongs to the one written last before it is read, in the same bytes.
func (f *Flow) joinElidedViews(acc []access, join *forest) {
	writers := f.writersBySpot(acc)
	for _, v := range f.Method.Outputs { // read at the end
		acc[v].read = min(acc[v].read, len(f.Steps))
	}
	for v := range f.Method.Values {
		if !f.isPlanned(v) || acc[v].write != never || acc[v].read == never {
			continue
		}
		list := writers[spotOf(f.Method.Values[v].Tensor)]
		n, _ := slices.BinarySearchFunc(list, acc[v].read, func(w, at int) int { return cmp.Compare(acc[w].write, at) })
		if n > 0 {
			join.union(list[n-1], v)
		}
	}
}

// writersBySpot lists the values that instructions write, by place, as first written.
func (f *Flow) writersBySpot(acc []access) map[spot][]int {
	writers := make(map[spot][]int)
	for v := range f.Method.Values {
		if f.isPlanned(v) && acc[v].write != never {
			s := spotOf(f.Method.Values[v].Tensor)
			writers[s] = append(writers[s], v)
		}
	}
	for _, list := range writers {
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(acc[a].write, acc[b].write) })
	}
	return writers
}

func (f *Flow) isPlanned(v int) bool {
	return f.Method.Values[v].Kind == tensor.KindTensor && f.Method.Values[v].Tensor.Storage == pte.Planned
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
