package ir

import (
	"cmp"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// access is when a value is first read, first written and last touched, as steps.
type access struct {
	read, write int // never where not at all
	last        int
}

const never = int(^uint(0) >> 1)

// addStorages joins the values that share bytes and classifies the classes.
func (f *Flow) addStorages() {
	acc := f.accesses()
	join := newForest(len(f.Method.Values))
	for i := range f.Steps {
		if from, to, ok := f.Steps[i].alias(); ok {
			join.union(from, to)
		}
	}
	f.joinElidedViews(acc, join)

	f.Of = make([]int, len(f.Method.Values))
	index := make(map[int]int)
	for v := range f.Method.Values {
		f.Of[v] = -1
		t := f.Method.Values[v].Tensor
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
		f.Storages[s].Bytes = max(f.Storages[s].Bytes, t.NBytes())
	}
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
		acc[v] = access{never, never, -1}
	}
	for i := range f.Steps {
		s := &f.Steps[i]
		for _, v := range s.Reads {
			acc[v].read, acc[v].last = min(acc[v].read, i), i
		}
		for _, v := range s.Updates {
			acc[v].read, acc[v].write, acc[v].last = min(acc[v].read, i), min(acc[v].write, i), i
		}
		for _, v := range s.Writes {
			acc[v].write, acc[v].last = min(acc[v].write, i), i
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

// joinElidedViews finds values that no instruction writes though they are read: the
// exporter dropped a view and gave its result the place of the operand. Such a
// value belongs to the one written last before it is read, in the same bytes.
func (f *Flow) joinElidedViews(acc []access, join *forest) {
	type place struct {
		arena  int
		offset int64
	}
	writers := make(map[place][]int)
	for v := range f.Method.Values {
		t := f.Method.Values[v].Tensor
		if f.Method.Values[v].Kind == tensor.KindTensor && t.Storage == pte.Planned && acc[v].write != never {
			p := place{t.Arena, t.Offset}
			writers[p] = append(writers[p], v)
		}
	}
	for _, list := range writers {
		slices.SortFunc(list, func(a, b int) int { return cmp.Compare(acc[a].write, acc[b].write) })
	}
	outputs := make(map[int]bool, len(f.Method.Outputs))
	for _, v := range f.Method.Outputs {
		outputs[v] = true
	}
	for v := range f.Method.Values {
		t := f.Method.Values[v].Tensor
		read := acc[v].read
		if f.Method.Values[v].Kind != tensor.KindTensor || t.Storage != pte.Planned || acc[v].write != never {
			continue
		}
		if read == never {
			if !outputs[v] {
				continue
			}
			read = len(f.Steps)
		}
		list := writers[place{t.Arena, t.Offset}]
		n, _ := slices.BinarySearchFunc(list, read, func(w, at int) int { return cmp.Compare(acc[w].write, at) })
		for n--; n >= 0; n-- {
			if f.Method.Values[list[n]].Tensor.NBytes() == t.NBytes() {
				join.union(list[n], v)
				break
			}
		}
	}
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
