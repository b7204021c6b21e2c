package ir

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Exporters omit the copy of a view to another shape, and give its result the place of the operand.
// That is correct if both have the same memory layout. The result of a view of a channels-last
// value is declared contiguous all the same: it is then laid out by a copy, in its own storage.

func (r Relaid) String() string {
	if r.Old {
		return fmt.Sprintf("value %d, a view of state %d that is read after the state's update: copied before it", r.Value, r.From)
	}
	return fmt.Sprintf("value %d, a view of value %d, which has another dim order: laid out by a copy", r.Value, r.From)
}

// joinElidedViews finds values whose bytes are read before an instruction has written them: the exporter
// dropped a view and gave its result the place of the operand. Such a value is a view of the value that
// was last written to the same bytes before it is read, in this call or in the previous one: state is
// written at the end.
func (b *builder) joinElidedViews(acc []access, join *forest) error {
	for _, v := range b.Outputs { // read at the end
		acc[v].read = min(acc[v].read, len(b.Steps))
	}
	for _, v := range b.tensors(nil, b.Outputs...) {
		acc[v].contents = true
	}
	places := b.placesOf(acc)
	b.relaid = make([]bool, len(b.Values))
	for v := range b.Values {
		if !b.isPlaced(v) || acc[v].write < acc[v].read || acc[v].read == never && !b.isDeclared(v) {
			continue
		}
		p := places[SpotOf(b.src.Values[v].Tensor)]
		if p == nil {
			continue
		}
		r := p.before(acc, v)
		if r.From < 0 || r.From == v || r.Carried && !acc[v].contents && !b.isDeclared(v) {
			continue
		}
		r.Old = b.isOld(p, v, acc)
		if err := b.joinView(r, acc, join); err != nil {
			return err
		}
	}
	return nil
}

// before returns value v as a view of the value whose bytes are at the place when v is first read.
func (p *place) before(acc []access, v int) Relaid {
	n, _ := slices.BinarySearchFunc(p.writers, acc[v].read, func(w, at int) int { return cmp.Compare(acc[w].write, at) })
	if n > 0 {
		return Relaid{Value: v, From: p.writers[n-1]}
	}
	return Relaid{Value: v, From: p.carried, Carried: true}
}

// isOld reports whether value v is a view of a state's previous contents that is read after they were replaced: exporters
// copy the new values of states onto them one by one, at the end, and one of these may be a view of another state.
func (b *builder) isOld(p *place, v int, acc []access) bool {
	a := &acc[v]
	return !b.links.AsWritten && a.write == never && p.updated < a.source && a.last < p.updated && len(p.writers) == 1 &&
		acc[p.writers[0]].write == p.updated
}

// joinView makes a value a view of another one, or a copy of it if they have different layouts or are read at different times.
func (b *builder) joinView(r Relaid, acc []access, join *forest) error {
	from, v := r.From, r.Value
	switch {
	case b.links.AsWritten || sameMemory(b.Values[from].Tensor, b.Values[v].Tensor) && !r.Old:
		join.union(from, v)
		if b.Values[from].Tensor.Dynamism == tensor.Static {
			return nil
		}
		b.followed = append(b.followed, r)
	case acc[v].read == never || acc[v].write != never && !r.Carried: // unused, or a buffer that a later step fills
		return nil
	default:
		if err := b.canRelay(from, v, acc[from].part || acc[v].write != never); err != nil {
			return b.elidedError(acc[v].read, from, v, err)
		}
		r.Carried = r.Carried || r.Old
		b.Relaid, b.relaid[v] = append(b.Relaid, r), true
	}
	return nil
}

func (b *builder) elidedError(read, from, v int, err error) error {
	f, t := b.Values[from].Tensor, b.Values[v].Tensor
	err = fmt.Errorf("value %d of sizes %v shares the memory of value %d of sizes %v in dim order %v, a view that the exporter left out: %w; %w",
		v, t.Sizes, from, f.Sizes, f.DimOrder, err, pte.ErrUnsupported)
	if read < len(b.Steps) {
		return b.stepError(&b.Steps[read], err)
	}
	return err
}

// canRelay returns why a copy cannot make the view, nil if it can.
func (b *builder) canRelay(from, v int, updated bool) error {
	f, t := b.Values[from].Tensor, b.Values[v].Tensor
	n, _ := tensor.Product(f.Sizes)
	m, _ := tensor.Product(t.Sizes)
	switch {
	case b.links.View == nil:
		return fmt.Errorf("no operator aten::view_copy.out is there to lay it out")
	case f.DType != t.DType || n != m:
		return fmt.Errorf("it has other elements")
	case f.Dynamism != tensor.Static || t.Dynamism != tensor.Static:
		return fmt.Errorf("its sizes vary")
	case updated:
		return fmt.Errorf("value %d is changed in part", from)
	}
	return nil
}

// run is a group of dimensions that is contiguous in memory in logical order: its number of
// elements, and their stride in logical order.
type run struct{ size, stride int }

// appendRuns appends the dimensions of a tensor in memory order, merged where possible. A nil order means
// contiguous.
func appendRuns(list []run, sizes []int, order []uint8) []run {
	var strides [tensor.MaxRank + 1]int
	strides[len(sizes)] = 1
	for i := len(sizes) - 1; i >= 0; i-- {
		strides[i] = strides[i+1] * sizes[i]
	}
	for i, size := range sizes {
		d := i
		if order != nil {
			d = int(order[i])
			size = sizes[d]
		}
		r := run{size, strides[d+1]}
		if n := len(list); n > 0 && list[n-1].stride == r.size*r.stride {
			list[n-1] = run{list[n-1].size * r.size, r.stride}
		} else if r.size != 1 {
			list = append(list, r)
		}
	}
	return list
}

func (t *Tensor) runs() []run { return appendRuns(nil, t.Sizes, t.DimOrder) }

// sameMemory reports whether two tensors have each element, in logical order, at the same offset.
func sameMemory(a, b *Tensor) bool { return slices.Equal(a.runs(), b.runs()) }

// maxRelays bounds the copies of one method.
const maxRelays = 1 << 14

// addRelays inserts the copies, and the steps that set the sizes of other elided views, after the steps
// that write their sources, and at the start for what is there before the first step. A jump to the following step
// skips them.
func (b *builder) addRelays() error {
	if len(b.Relaid)+len(b.followed) == 0 {
		return nil
	}
	steps, added, err := b.relays()
	if err != nil {
		return err
	}
	for _, v := range b.Inputs {
		steps = append(steps, added[v]...)
	}
	place := make([]int, len(b.Steps)+1)
	for i := range b.Steps {
		place[i] = len(steps)
		s := b.Steps[i]
		steps = append(steps, s)
		for _, list := range [...][]int{s.Writes, s.Updates} {
			for _, v := range list {
				for _, c := range added[v] {
					c.Origin = s.Origin
					steps = append(steps, c)
				}
			}
		}
		if len(steps) > len(b.Steps)+maxRelays {
			return b.stepError(&s, fmt.Errorf("more than %d copies of views that the exporter left out: %w", maxRelays, pte.ErrLimit))
		}
	}
	place[len(b.Steps)] = len(steps)
	for i := range steps {
		if s := &steps[i]; s.IsJump() {
			s.Target = place[s.Target]
		}
	}
	b.Steps = steps
	return nil
}

// relays returns the steps to add at the start, and those behind what writes a value.
func (b *builder) relays() (start []Step, added map[int][]Step, err error) {
	added = make(map[int][]Step)
	add := func(r Relaid, s Step) error {
		if err := b.setEffects(&s); err != nil {
			return b.stepError(&s, err)
		}
		if r.Carried {
			start = append(start, s)
		}
		if !r.Old {
			added[r.From] = append(added[r.From], s)
		}
		return nil
	}
	for _, r := range b.Relaid {
		s := Step{Kind: KernelCall, Op: b.links.View.Op, Sig: b.links.View.Sig, Args: []int{r.From, b.addSizes(r.Value), r.Value, r.Value}}
		if err := add(r, s); err != nil {
			return nil, nil, err
		}
	}
	for _, r := range b.followed {
		if err := add(r, b.followStep(r.From, r.Value)); err != nil {
			return nil, nil, err
		}
	}
	return start, added, nil
}

// addSizes adds the list of a value's sizes.
func (b *builder) addSizes(v int) int {
	var items []int
	for _, size := range b.Values[v].Tensor.Sizes {
		items = append(items, len(b.Values))
		b.Values = append(b.Values, Value{Kind: tensor.KindInt, Int: int64(size), Storage: -1})
	}
	b.Values = append(b.Values, List(tensor.KindIntList, items))
	return len(b.Values) - 1
}
