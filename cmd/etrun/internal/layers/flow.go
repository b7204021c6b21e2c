package layers

import (
	"maps"
	"slices"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
)

// flow follows which values an instruction, or a node inside a delegate, reads.
type flow struct {
	all      []Written       // the written values, and the inputs, as they are first read
	outer    map[slotKey]int // index of the last value of a slot in a method
	inner    map[int]int     // the same inside the running delegate
	memory   []memory        // what instructions have written, in order
	operands []int           // what the running instruction reads
	nodes    []int           // what the running node reads
}

// memory is the memory of a value when it was written.
type memory struct {
	data []byte
	at   int
}

// ofInput is the round of inputs among the values of a flow.
const ofInput = -1

type slotKey struct {
	method string
	slot   int
}

// forget forgets the values of the call before, other than those that were computed at load.
func (f *flow) forget() {
	maps.DeleteFunc(f.outer, func(_ slotKey, at int) bool { return f.all[at].Call != atLoad })
	f.memory = slices.DeleteFunc(f.memory, func(m memory) bool { return f.all[m.at].Call != atLoad })
	f.inner = nil
}

// wrote notes that a slot has a new value.
func (f *flow) wrote(e *trace.Event, v *trace.Value, at int) {
	if e.Index >= 0 {
		f.inner[v.Index] = at
		return
	}
	if f.outer == nil {
		f.outer = make(map[slotKey]int)
	}
	f.outer[slotKey{e.Method, v.Index}] = at
	if v.Kind == tensor.KindTensor {
		f.memory = append(f.memory, memory{v.Tensor.Data, at})
	}
}

// within returns the values in whose memory a view lies, the last of each part.
func (f *flow) within(v *tensor.Value) (list []int) {
	if v.Kind != tensor.KindTensor {
		return nil
	}
	for _, m := range slices.Backward(f.memory) {
		if !cpu.Overlap(m.data, v.Tensor.Data) {
			continue
		}
		list = append(list, m.at)
		if cpu.Contains(m.data, v.Tensor.Data) {
			break
		}
	}
	return list
}

// read notes what an instruction or a node is about to read. Values that nothing has written are inputs.
func (r *Recorder) read(e *trace.Event) {
	if e.Index >= 0 {
		r.nodes = r.nodes[:0]
		for i := range e.Values {
			r.nodes = append(r.nodes, r.innerSources(&e.Values[i])...)
		}
		return
	}
	r.operands, r.inner = nil, make(map[int]int)
	for i := range e.Values {
		v := &e.Values[i]
		if at, ok := r.outer[slotKey{e.Method, v.Index}]; ok {
			r.operands = append(r.operands, at)
		} else if list := r.within(v.Value); list != nil {
			r.operands = append(r.operands, list...)
		} else if at := r.input(e, v); at >= 0 {
			r.operands = append(r.operands, at)
		}
	}
}

// input keeps an input, and returns its index; -1 for what is no input.
func (r *Recorder) input(e *trace.Event, v *trace.Value) int {
	if v.Kind != tensor.KindTensor || v.Tensor.Const || e.Run == 0 || !r.fits(v.Value) {
		return -1
	}
	w := Written{Place: placeOf(e, r.call), Slot: v.Index, Round: ofInput, Value: session.Clone(v.Value)}
	r.all = append(r.all, w)
	r.wrote(e, v, len(r.all)-1)
	return len(r.all) - 1
}

// innerSources returns the values that an operand of a node is: one of a node, else one with the same
// bytes among those that the delegate's instruction reads, else any of these; none for a constant.
func (r *Recorder) innerSources(v *trace.Value) []int {
	if at, ok := r.inner[v.Index]; ok {
		return []int{at}
	}
	if v.Kind == tensor.KindTensor && v.Tensor.Const {
		return nil
	}
	if at := r.alike(r.operands, v.Value); at >= 0 {
		return []int{at}
	}
	return r.operands
}

// sources returns what a written value is computed from.
func (r *Recorder) sources(e *trace.Event, v *tensor.Value) []int {
	switch {
	case e.Index >= 0:
		return unique(r.nodes)
	case len(r.inner) == 0:
		return unique(r.operands)
	}
	nodes := make([]int, 0, len(r.inner))
	for _, at := range r.inner {
		nodes = append(nodes, at)
	}
	slices.Sort(nodes)
	if at := r.alike(nodes, v); at >= 0 {
		return []int{at}
	}
	return nodes
}

// alike returns the last of some values that has the same bytes, -1 for none.
func (r *Recorder) alike(list []int, v *tensor.Value) int {
	for _, at := range slices.Backward(list) {
		if sameBytes(r.all[at].Value, v) {
			return at
		}
	}
	return -1
}

func unique(list []int) []int {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
