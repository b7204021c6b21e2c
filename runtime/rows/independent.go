package rows

import (
	"errors"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// Run is a run of a method that has ended: its values, and which calls of delegates ran.
type Run struct {
	Values []tensor.Value
	Takes  func(step int) bool // whether the delegate behind a SizesJump ran
}

// Independent returns nil if the run computed every row of each output, an index of its first dimension, from the same row of the
// inputs alone, in a way that does not depend on the number of rows: runs of the same sizes but for that are the runs of their rows.
// The rows are at least two. It follows them through all steps; the sizes are those of the run. Otherwise the error is an *Error
// that names the first step that may compute an element from several rows.
func Independent(m *ir.Method, images []delegate.Image, run Run) error {
	f := &follower{Method: m, images: images, run: run, dims: make([]int, len(m.Values)), known: make([]bool, len(m.Values)),
		numbers: make([]dependence, len(m.Values)), last: make([]int, len(m.Storages)), writers: m.Writers(),
		written: make([]bool, len(m.Values))}
	if err := f.begin(); err != nil {
		return err
	}
	for i := 0; i < len(m.Steps); {
		next, err := f.step(i)
		if err != nil {
			return err
		}
		i = next
	}
	return f.end()
}

// follower follows the rows through a run.
type follower struct {
	*ir.Method
	images  []delegate.Image
	run     Run
	rows    int
	dims    []int        // by value: the dimension of the rows, None if all have the same
	known   []bool       // by value: dims is
	numbers []dependence // by value
	last    []int        // by storage: the value that was written last, None if none was
	writers [][]int      // by storage
	written []bool       // by value: sizes are those of its only write
}

func (f *follower) count() int               { return f.rows }
func (f *follower) sizes(v int) []int        { return f.run.Values[v].Tensor.Sizes }
func (f *follower) rowsOf(v int) int         { return f.dims[v] }
func (f *follower) place(i int) string       { return f.Steps[i].Origin.Place(f.StepName(&f.Steps[i])) }
func (f *follower) refuse(i int) error       { return f.refuseFor(i, "may compute a row from several rows") }
func (f *follower) counted(v int) dependence { return f.numbers[v] }

func (f *follower) refuseFor(i int, why string) error { return &Error{f.place(i) + " " + why} }

func (f *follower) number(v int) (int64, bool) {
	return f.run.Values[v].Int, f.run.Values[v].Kind == tensor.KindInt && f.numbers[v] == fixed
}

// begin finds the rows of the inputs.
func (f *follower) begin() error {
	for v := range f.dims {
		f.dims[v] = None
		s := f.Values[v].Storage
		f.known[v] = s < 0 || f.Storages[s].Kind.IsConstant() || f.Storages[s].Kind == ir.State && len(f.writers[s]) == 0
	}
	for s := range f.last {
		f.last[s] = None
	}
	for i := range f.Steps {
		if s := &f.Steps[i]; s.Kind == ir.FreeCall && f.Frees(s) {
			f.written[s.Args[0]] = true // its sizes are not kept
		}
	}
	for i, v := range f.Inputs {
		if f.Values[v].Kind != tensor.KindTensor || len(f.sizes(v)) == 0 || i > 0 && f.sizes(v)[0] != f.rows {
			return &Error{fmt.Sprintf("input %d has not the rows of input 0", i)}
		}
		f.rows = f.sizes(v)[0]
		f.write(v, 0)
	}
	if f.rows < 2 {
		return &Error{"the run has fewer than two rows"}
	}
	return nil
}

// end checks the outputs.
func (f *follower) end() error {
	for i, v := range f.Outputs {
		if f.Values[v].Kind != tensor.KindTensor || !f.resolve(v) || f.dims[v] != 0 || f.sizes(v)[0] != f.rows {
			return &Error{fmt.Sprintf("output %d has not the rows of the inputs along its first dimension", i)}
		}
	}
	return nil
}

// write records what a step has written.
func (f *follower) write(v, dim int) {
	s := f.Values[v].Storage
	for _, u := range f.Storages[s].Values {
		f.known[u] = false
	}
	f.dims[v], f.known[v], f.written[v], f.last[s] = dim, true, true, v
}

// resolve finds the rows of a tensor that shares the bytes of the one that was written, without a step. ok is false if nothing
// is known of it.
func (f *follower) resolve(v int) (ok bool) {
	if f.known[v] {
		return true
	}
	from := f.last[f.Values[v].Storage]
	if from == None || f.Values[v].Tensor.DType != f.Values[from].Tensor.DType || !f.contiguous(v) || !f.contiguous(from) {
		return false
	}
	dim := None
	if f.dims[from] != None {
		if dim = split(f.sizes(from), f.sizes(v), f.dims[from], f.rows); dim == None {
			return false
		}
	}
	f.dims[v], f.known[v] = dim, true
	return true
}

func (f *follower) contiguous(v int) bool { return slices.IsSorted(f.run.Values[v].Tensor.DimOrder) }

// step follows the rows through step i and those that a jump joins with it, and returns the next step.
func (f *follower) step(i int) (next int, err error) {
	s := &f.Steps[i]
	if s.Kind == ir.SizesJump {
		end, ok := block(f.Method, i)
		if !ok {
			return 0, f.refuseFor(i, "jumps in an order that is not known")
		}
		from, to := s.Target, end
		if f.run.Takes(i) {
			from, to = i+1, s.Target-1
		}
		for k := from; k < to && err == nil; k++ {
			err = f.one(k)
		}
		return end, err
	}
	return i + 1, f.one(i)
}

// one follows the rows through a step that is no jump.
func (f *follower) one(i int) error {
	s := &f.Steps[i]
	switch s.Kind {
	case ir.FreeCall:
		return nil
	case ir.JumpFalseCall:
		return f.refuseFor(i, "is a condition")
	case ir.MoveCall:
		f.numbers[s.Args[1]] = f.numbers[s.Args[0]]
	}
	if err := f.access(i); err != nil {
		return err
	}
	if v, ok := slot(f.Method, s); ok {
		c := call{f, s, f.Method}
		f.numbers[v] = c.result()
		return nil
	}
	dims, err := f.results(i)
	if err != nil {
		return err
	}
	for k, v := range s.Writes {
		t, d := f.run.Values[v].Tensor, dims(k)
		switch {
		case f.written[v]:
			return f.refuseFor(i, fmt.Sprintf("writes value %d, which is freed or written again", v))
		case t.Numel() == 0:
			d = None
		case d >= t.Rank() || d != None && t.Sizes[d]%f.rows != 0:
			return f.refuse(i)
		}
		if s.IsView() {
			f.dims[v], f.known[v], f.written[v] = d, true, true
		} else {
			f.write(v, d)
		}
	}
	return nil
}

// access checks that a step reads only what the run has computed before, and changes no state.
func (f *follower) access(i int) error {
	s := &f.Steps[i]
	state := func(v int) bool { return f.Storages[f.Values[v].Storage].Kind == ir.State }
	changed := func(v int) bool { return state(v) && len(f.writers[f.Values[v].Storage]) > 0 }
	switch {
	case slices.ContainsFunc(s.Reads, changed), slices.ContainsFunc(s.Writes, state), slices.ContainsFunc(s.Updates, state):
		return f.refuseFor(i, "uses state")
	case len(s.Updates) > 0:
		return f.refuseFor(i, "updates a tensor in place")
	case s.Kind == ir.KernelCall && (s.Op.Random || !s.Op.Pure):
		return f.refuseFor(i, "does not depend on its arguments alone")
	}
	for _, v := range s.Reads {
		if !f.resolve(v) {
			return f.refuseFor(i, fmt.Sprintf("reads value %d, which shares the memory of others", v))
		}
	}
	return nil
}

// results returns the dimension of the rows of each result of step i.
func (f *follower) results(i int) (dims func(k int) int, err error) {
	s := &f.Steps[i]
	c := call{f, s, f.Method}
	all := func(dim int) (func(int) int, error) { return func(int) int { return dim }, nil }
	rows := slices.ContainsFunc(s.Reads, func(v int) bool { return f.dims[v] != None })
	switch {
	case !rows && (s.Kind != ir.KernelCall || !slices.ContainsFunc(s.Args, c.counts)):
		return all(None)
	case s.Kind == ir.MoveCall:
		return all(f.dims[s.Args[0]])
	case s.Kind == ir.DelegateCall:
		list, err := delegateRows(f, f.images[s.Delegate], s, func(v int) *tensor.Tensor { return f.run.Values[v].Tensor })
		if err != nil {
			return nil, &Error{fmt.Sprintf("%v: %v", f.refuse(i).(*Error).Reason, err)}
		}
		return func(k int) int { return list[k] }, nil
	}
	if dim, ok := c.rows(); ok {
		return all(dim)
	}
	return nil, f.refuse(i)
}

// delegateRows returns the dimensions of the rows of the outputs of a delegate.
func delegateRows(f facts, img delegate.Image, s *ir.Step, of func(v int) *tensor.Tensor) (outputs []int, err error) {
	by, ok := img.(lowering.RowWise)
	if !ok {
		return nil, errUnknown
	}
	args, dims := make([]*tensor.Tensor, len(s.Args)), make([]int, s.Inputs)
	for i, v := range s.Args {
		if args[i] = of(v); args[i] == nil {
			return nil, errUnknown
		}
	}
	for i := range dims {
		dims[i] = f.rowsOf(s.Args[i])
	}
	return by.Rows(f.count(), args, dims)
}

var errUnknown = errors.New("the backend does not tell")
