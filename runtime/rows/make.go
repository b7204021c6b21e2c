package rows

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// Make returns the plan of a method. The images are those of its delegates, by index. single reports whether a tensor had
// size 1 in a dimension in a call of one row; nil if there was no call. It should be one in which other sizes that vary
// were not 1, such as the number of earlier tokens: these are then not mistaken for rows.
func Make(m *ir.Method, images []delegate.Image, single func(v, dim int) bool) (*Plan, error) {
	f := &finder{Method: m, images: images, plan: &Plan{Dims: make([]int, len(m.Values))},
		homes: make([]placement, len(m.Values)), kinds: make([]placement, len(m.Steps)), numbers: make([]dependence, len(m.Values))}
	if err := f.findInputs(); err != nil {
		return nil, err
	}
	f.findDims(single)
	f.findShared()
	for i := 0; i < len(m.Steps); {
		next, err := f.classify(i)
		if err != nil {
			return nil, err
		}
		i = next
	}
	f.addSegments()
	if !slices.ContainsFunc(f.plan.Segments, func(s Segment) bool { return s.Together }) || f.plan.Together == 0 {
		return nil, &Error{"no step computes the rows of its tensors independently"}
	}
	return f.plan, nil
}

// findInputs finds the inputs with rows, and the largest number of these: tensors of one varying size.
func (f *finder) findInputs() error {
	for i, v := range f.Inputs {
		t := f.Values[v].Tensor
		if t == nil || t.Dynamism == tensor.Static {
			continue
		}
		d := outermost(t.Sizes)
		if d == None || t.Dynamism == tensor.DynamicUnbound {
			return &Error{fmt.Sprintf("input %d of sizes %s has no dimension of a bounded number of rows", i, tensor.FormatSizes(t.Sizes))}
		}
		if f.plan.Rows != 0 && f.plan.Rows != t.Sizes[d] {
			return &Error{fmt.Sprintf("inputs have up to %d and up to %d rows", f.plan.Rows, t.Sizes[d])}
		}
		f.plan.Rows = t.Sizes[d]
		f.plan.Inputs = append(f.plan.Inputs, i)
	}
	if f.plan.Rows == 0 {
		return &Error{"no input has a varying number of rows"}
	}
	return nil
}

// findDims finds the tensors that may have rows: their outermost size varies up to the largest number of rows.
func (f *finder) findDims(single func(v, dim int) bool) {
	for v := range f.Values {
		f.plan.Dims[v] = None
		t := f.Values[v].Tensor
		if t == nil || t.Const || t.Dynamism != tensor.DynamicBound || !slices.IsSorted(t.DimOrder) {
			continue
		}
		kind := f.Storages[f.Values[v].Storage].Kind
		d := outermost(t.Sizes)
		if kind != ir.Activation && kind != ir.Input || d == None || t.Sizes[d] != f.plan.Rows || single != nil && !single(v, d) {
			continue
		}
		f.plan.Dims[v] = d
	}
}

// addSegments joins steps of one kind to segments, and lists the values that each needs from the other kind. Steps of
// both kinds are in a segment of either.
func (f *finder) addSegments() {
	at := make([]placement, len(f.Values)) // where the contents of tensors are
	for _, v := range f.Inputs {
		at[v] = each
	}
	for i := range f.Steps {
		s := &f.Steps[i]
		for _, k := range [...]placement{each, together} {
			if f.kinds[i]&k == 0 {
				continue
			}
			seg := f.segment(i, k)
			for _, list := range [...][]int{s.Reads, s.Updates} {
				for _, v := range list {
					if at[v] != 0 && at[v]&k == 0 {
						seg.Copies = append(seg.Copies, v)
						at[v] |= k
					}
				}
			}
		}
		for _, list := range [...][]int{s.Writes, s.Updates} {
			for _, v := range list {
				at[v] = f.kinds[i]
			}
		}
		f.addCount(f.kinds[i])
	}
	for _, v := range f.Outputs {
		if at[v] == together && !slices.Contains(f.plan.Outputs, v) {
			f.plan.Outputs = append(f.plan.Outputs, v)
		}
	}
}

func (f *finder) addCount(k placement) {
	switch k {
	case together:
		f.plan.Together++
	case each:
		f.plan.Each++
	}
}

// segment returns the segment of step i and kind k: one of the last two, if it ends before the step, or a new one. If it is
// not the last, that has only steps of both kinds since the end of this one, which compute no tensors.
func (f *finder) segment(i int, k placement) *Segment {
	list := f.plan.Segments
	for n := len(list) - 1; n >= max(len(list)-2, 0); n-- {
		if s := &list[n]; s.Together == (k == together) && s.End == i {
			s.End = i + 1
			return s
		}
	}
	f.plan.Segments = append(list, Segment{First: i, End: i + 1, Together: k == together})
	return &f.plan.Segments[len(list)]
}
