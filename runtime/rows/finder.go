package rows

import (
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// placement is where a step runs, or where a value was written: in each instance, in the common one, or in both.
type placement uint8

const (
	each placement = 1 << iota
	together
	both = each | together
)

// finder finds the kinds of steps.
type finder struct {
	*ir.Method
	images []delegate.Image
	plan   *Plan
	homes  []placement // by value: where it was last written; 0 for constants and numbers of the file
	kinds  []placement // by step
	fixed  []bool      // by storage: its steps run in each instance
	// updated marks the storages that steps update in place or that several write.
	updated []bool
	undo    []change
	numbers []dependence // by value
	joined  bool         // the steps of a block are being classified
}

// change is the home of a value before a block was classified.
type change struct {
	value int
	was   placement
}

func (f *finder) count() int               { return f.plan.Rows }
func (f *finder) rowsOf(v int) int         { return f.plan.Dims[v] }
func (f *finder) counted(v int) dependence { return f.numbers[v] }

// sizes returns the largest sizes.
func (f *finder) sizes(v int) []int {
	sizes := f.Values[v].Tensor.Sizes
	if f.plan.Dims[v] == 0 && sizes[0] == 1 { // lifted
		sizes = append([]int{f.plan.Rows}, sizes[1:]...)
	}
	return sizes
}

func (f *finder) number(v int) (int64, bool) {
	x := &f.Values[v]
	return x.Int, x.Kind == tensor.KindInt && !x.Changes
}

// dim returns a dimension as a number from 0 on. ok is false if it is not fixed.
func (f *finder) dim(v, rank int) (d int, ok bool) {
	x := &f.Values[v]
	if x.Kind != tensor.KindInt || x.Changes {
		return 0, false
	}
	if d = int(x.Int); d < 0 {
		d += rank
	}
	return d, d >= 0 && d < rank
}

// outermost returns the first dimension whose size is not 1, None if there is none.
func outermost(sizes []int) int { return slices.IndexFunc(sizes, func(n int) bool { return n != 1 }) }
