package exec

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/rows"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Batch executes instances of one method together: steps that compute each row of their tensors from the same row of their operands run
// once for all, in memory of the batch, the others in each instance. It must not be used concurrently.
type Batch struct {
	lead *Instance // has the rows of all; its state is never used
	plan *rows.Plan
	most int

	joined []seat
	sizes  [tensor.MaxRank]int
	loop   cpu.Run
	single singleLoop
}

// seat is an instance that takes part in a run.
type seat struct {
	*Instance
	err *error // of its run
}

// NewBatch returns a batch for at most n instances, m among them. Build makes its memory. The last run of m must have succeeded in a call
// of one row.
func (m *Instance) NewBatch(n int) (*Batch, error) {
	if err := m.begin(); err != nil {
		return nil, err
	}
	defer m.end()
	if !m.executed || m.reference != nil || m.shares != nil || n < 1 {
		return nil, m.program.Batch(m.ir.Name, "calls run together only after one that succeeded, without state of another method, "+
			"and not compared with the method as it was exported")
	}
	plan, err := rows.Make(m.ir, m.shared.Images, func(v, d int) bool { return m.values[v].Tensor.Sizes[d] == 1 })
	if err != nil {
		return nil, m.program.Batch(m.ir.Name, err.Error())
	}
	lead := newInstance(m.program, m.shared)
	lead.stateless, lead.transient, lead.lifted, lead.rows = true, true, plan.Lifted, min(n, plan.Rows)
	lead.observed = *m.program.newWatch(context.Background(), m.ir.Name)
	b := &Batch{lead: lead, plan: plan, most: lead.rows}
	b.single.b = b
	return b, nil
}

// Build makes the memory of the batch. The program must be retained, until the batch is closed.
func (b *Batch) Build(ctx context.Context) error {
	err := b.lead.build(ctx, &b.lead.observed)
	if err != nil {
		b.lead.free()
	}
	return err
}

// Rows returns the largest number of instances that run together.
func (b *Batch) Rows() int { return b.most }

// Steps returns the numbers of instructions that run once for all instances, and in each of them.
func (b *Batch) Steps() (batched, separate int) { return b.plan.Together, b.plan.Each }

// Bytes returns the memory of the batch.
func (b *Batch) Bytes() int64 {
	b.lead.Memory()
	return b.lead.Bytes()
}

// Close frees the batch and releases the program. It does not close the instances.
func (b *Batch) Close() error { return b.lead.Close() }

// Execute runs instances of the method on the inputs that were set, and sets errs[i] to the error of list[i]. Those that cannot take part
// run alone. It returns the error of a run that failed for all, which errs has too.
func (b *Batch) Execute(ctx context.Context, list []*Instance, errs []error) error {
	b.joined = b.joined[:0]
	for i, m := range list {
		errs[i] = nil
		if m.shared != b.lead.shared {
			errs[i] = m.program.Argument(fmt.Sprintf("batch of method %q: an instance of another method", b.lead.ir.Name))
		} else if err := m.beginAll(); err != nil {
			errs[i] = m.refused(ctx, err)
		} else if b.joins(m) {
			b.joined = append(b.joined, seat{m, &errs[i]})
		} else {
			errs[i] = m.executeAlone(ctx)
		}
	}
	defer func() {
		for _, s := range b.joined {
			s.endAll()
		}
	}()
	switch len(b.joined) {
	case 0:
		return nil
	case 1:
		*b.joined[0].err = b.joined[0].executeStarted(ctx)
		return nil
	}
	return b.observed(ctx)
}

// executeAlone runs an instance that was claimed by itself, and releases it.
func (m *Instance) executeAlone(ctx context.Context) error {
	defer m.endAll()
	return m.executeStarted(ctx)
}

// joins reports whether an instance takes part in a run.
func (b *Batch) joins(m *Instance) bool {
	w := &m.observed
	watched := w.own.wants.Any(ofInstructions) || w.wants.Any(trace.Nodes|trace.Values)
	if len(b.joined) == b.most || watched || m.poison != nil || m.reference != nil || m.shares != nil {
		return false
	}
	for _, i := range b.plan.Inputs {
		in := &m.inputs[i]
		if d := b.plan.Dims[m.ir.Inputs[i]]; !in.set || d == rows.None || in.initial.Tensor.Sizes[d] != 1 {
			return false
		}
	}
	return true
}

// observed runs the instances that take part, and reports a run of each to its observers.
func (b *Batch) observed(ctx context.Context) error {
	for _, s := range b.joined {
		if s.observed.wants.Any(ofExecutes) {
			*s.err = s.startObserved(ctx)
		}
	}
	err := b.run(ctx)
	for _, s := range b.joined {
		if err != nil && *s.err == nil {
			*s.err = err
		}
		s.executed = *s.err == nil
		s.unset()
		if s.observed.wants.Any(ofExecutes) {
			*s.err = s.endObserved(*s.err)
		}
	}
	return err
}

// run runs all segments.
func (b *Batch) run(ctx context.Context) error {
	for _, s := range b.joined {
		s.executed = false
		s.ctx.StopWhen(ctx.Done())
		if *s.err == nil {
			*s.err = s.prepare()
		}
	}
	if err := b.lead.heap.begin(); err != nil {
		return err
	}
	for i := range b.lead.restore {
		*b.lead.restore[i].slot = b.lead.restore[i].was
	}
	b.lead.ctx.StopWhen(ctx.Done())
	w := &b.lead.observed
	w.ctx, w.run, w.fault = ctx, lastRun.Add(1), nil
	defer func() { w.ctx, w.run, w.event = nil, 0, trace.Event{} }()
	for i := range b.plan.Segments {
		s := &b.plan.Segments[i]
		if !s.Together {
			b.runSingle(ctx, s)
		} else if err := b.runRows(ctx, s); err != nil {
			return err
		}
	}
	for row, m := range b.joined {
		if *m.err != nil {
			continue
		}
		if err := b.scatter(row, b.plan.Outputs); err != nil {
			return err
		}
	}
	return nil
}

// keepRows copies all rows where a step selects the only one of an instance.
func (b *Batch) keepRows(step int) error {
	s := &b.lead.ir.Steps[step]
	from, to := b.lead.values[s.Args[0]].Tensor, b.lead.values[s.Writes[0]].Tensor
	sizes := append(b.sizes[:0], to.Sizes...)
	sizes[0] = len(b.joined)
	if err := to.Resize(sizes); err != nil || len(to.Data) != len(from.Data) {
		return b.mismatch(s.Args[0], from, len(b.joined))
	}
	copy(to.Data, from.Data)
	return nil
}

// lift gives tensors of one row as many as the batch has, in memory of their own.
func (m *Instance) lift() {
	for _, v := range m.lifted {
		d := m.ir.Values[v].Tensor
		sizes := slices.Clone(d.Sizes)
		sizes[0] = m.rows
		t := tensor.Make(d.DType, sizes, d.DimOrder, tensor.DynamicBound)
		t.Bind(m.memory.add(t.NBytes()))
		m.values[v].Tensor = t
	}
}

// failed reports whether all instances have failed.
func (b *Batch) failed() bool {
	return !slices.ContainsFunc(b.joined, func(s seat) bool { return *s.err == nil })
}

// runRows runs a segment for all rows.
func (b *Batch) runRows(ctx context.Context, s *rows.Segment) error {
	for _, v := range s.Copies {
		b.gather(v)
	}
	if b.failed() {
		return nil
	}
	first := s.First
	for _, i := range b.plan.Selected {
		if i < first || i >= s.End {
			continue
		}
		if err := b.lead.runSteps(ctx, first, i); err != nil {
			return err
		}
		if err := b.keepRows(i); err != nil {
			return err
		}
		first = i + 1
	}
	return b.lead.runSteps(ctx, first, s.End)
}

// runSingle runs a segment in the instances that have not failed, on all threads: one instance has too little work for them.
func (b *Batch) runSingle(ctx context.Context, s *rows.Segment) {
	b.single.ctx, b.single.segment = ctx, s
	b.lead.program.Pool.Do(&b.loop, len(b.joined), 1, &b.single)
	b.single.ctx = nil
}

// singleLoop is the loop of runSingle.
type singleLoop struct {
	b       *Batch
	ctx     context.Context
	segment *rows.Segment
}

// Range runs the segment in the instances of some rows.
func (l *singleLoop) Range(_, lo, hi int) {
	for row := lo; row < hi; row++ {
		m := l.b.joined[row]
		if *m.err == nil {
			*m.err = l.b.scatter(row, l.segment.Copies)
		}
		if *m.err == nil {
			*m.err = m.runSteps(l.ctx, l.segment.First, l.segment.End)
		}
	}
}

// gather copies a value of each instance to a row of the common one. Instances whose value has other sizes fail. The rows of
// those that have failed are undefined.
func (b *Batch) gather(v int) {
	d, to := b.plan.Dims[v], b.lead.values[v].Tensor
	first := true
	for row, m := range b.joined {
		if *m.err != nil {
			continue
		}
		from := m.values[v].Tensor
		sizes := append(b.sizes[:0], from.Sizes...)
		if sizes[d] != 1 {
			*m.err = b.mismatch(v, from, 1)
			continue
		}
		if sizes[d] = len(b.joined); first && to.Resize(sizes) == nil {
			first = false
		}
		n := len(from.Data)
		if first || !slices.Equal(to.Sizes, sizes) || len(to.Data) != n*len(b.joined) {
			*m.err = b.mismatch(v, from, 1)
			continue
		}
		copy(to.Data[row*n:(row+1)*n], from.Data)
	}
}

// scatter copies a row of values to an instance.
func (b *Batch) scatter(row int, values []int) error {
	var room [tensor.MaxRank]int
	for _, v := range values {
		d, from, to := b.plan.Dims[v], b.lead.values[v].Tensor, b.joined[row].values[v].Tensor
		if from.Sizes[d] != len(b.joined) {
			return b.mismatch(v, from, len(b.joined))
		}
		sizes := append(room[:0], from.Sizes...)
		sizes[d] = 1
		if err := to.Resize(sizes); err != nil {
			return b.mismatch(v, from, len(b.joined))
		}
		n := len(to.Data)
		if len(from.Data) != n*len(b.joined) {
			return b.mismatch(v, from, len(b.joined))
		}
		copy(to.Data, from.Data[row*n:(row+1)*n])
	}
	return nil
}

func (b *Batch) mismatch(v int, t *tensor.Tensor, want int) error {
	return b.lead.program.Batch(b.lead.ir.Name, fmt.Sprintf("value %d is %v, want %d rows along dimension %d", v, t, want, b.plan.Dims[v]))
}

// maxKnownRows bounds the sizes of inputs that a method remembers.
const maxKnownRows = 256

// CheckRows returns nil if the last run computed every row of each output from the same row of the inputs alone, else an error of a batch.
// Calls with sizes that were checked before allocate nothing.
func (m *Instance) CheckRows() error {
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	if !m.executed {
		return m.program.Batch(m.ir.Name, "rows are known only after a run that succeeded")
	}
	m.rowsKey = m.rowsKey[:0]
	for _, v := range m.ir.Inputs {
		if m.values[v].Kind != tensor.KindTensor {
			return m.program.Batch(m.ir.Name, fmt.Sprintf("input value %d is no tensor", v))
		}
		for _, n := range m.values[v].Tensor.Sizes {
			m.rowsKey = binary.AppendUvarint(m.rowsKey, uint64(n))
		}
	}
	err, known := m.rowsKnown[string(m.rowsKey)]
	if known {
		return err
	}
	if why := rows.Independent(m.ir, m.shared.Images, rows.Run{Values: m.values, Takes: m.tookStep}); why != nil {
		err = m.program.Batch(m.ir.Name, why.Error())
	}
	if m.rowsKnown == nil || len(m.rowsKnown) == maxKnownRows {
		m.rowsKnown = make(map[string]error)
	}
	m.rowsKnown[string(m.rowsKey)] = err
	return err
}

// tookStep reports whether the delegate behind a SizesJump ran.
func (m *Instance) tookStep(i int) bool { return m.accepts(&m.steps[i]) }
