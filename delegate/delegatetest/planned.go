package delegatetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// CheckPlanned returns an error if the units of an image violate the rules of [lowering.Planned]. It runs
// each call with a unit that has memory of its own, and twice with a unit in blocks, which contain other
// data before each run: results must be equal, or all must fail, and bytes outside of the blocks must not
// change. This is repeated in blocks that share bytes if they are used at different moments. calls are the
// arguments of calls, at the declared sizes or at others; their outputs are overwritten. An image without
// a workspace passes.
func CheckPlanned(img lowering.Planned, pool *cpu.Pool, calls [][]*tensor.Value) error {
	w := img.Workspace()
	if w == nil {
		return nil
	}
	for _, b := range []*blocks{placeBlocks(w, false), placeBlocks(w, true)} {
		if err := b.check(img, pool, calls); err != nil {
			return fmt.Errorf("in blocks that share bytes: %v: %w", b.shared, err)
		}
	}
	return nil
}

// blocks is memory that contains the blocks of a workspace.
type blocks struct {
	shared bool
	list   [][]byte
	memory []byte
	used   []bool // by byte: it belongs to a block
}

// Guard bytes are outside of blocks, at least guardBytes behind each; blocks are filled with poison
// between runs, which is NaN in floats.
const guard, poison, guardBytes = 0xA5, 0xFF, tensor.Alignment

// placeBlocks allocates the blocks one after the other, or with shared bytes if no moment is common.
func placeBlocks(w *lowering.Workspace, share bool) *blocks {
	b, size, at := &blocks{shared: share}, 0, make([]int, len(w.Blocks))
	end := func(i int) int {
		return (at[i] + int(w.Blocks[i].Bytes) + guardBytes + tensor.Alignment - 1) &^ (tensor.Alignment - 1)
	}
	for i, x := range w.Blocks {
		for j, other := range w.Blocks[:i] {
			if !share || x.First <= other.Last && other.First <= x.Last {
				at[i] = max(at[i], end(j))
			}
		}
		size = max(size, end(i))
	}
	b.memory, b.used = tensor.AlignedBytes(size), make([]bool, size)
	for i, x := range w.Blocks {
		from, to := at[i], at[i]+int(x.Bytes)
		b.list = append(b.list, b.memory[from:to])
		for k := from; k < to; k++ {
			b.used[k] = true
		}
	}
	return b
}

// spoil fills the blocks with poison, and everything else with guard bytes.
func (b *blocks) spoil() {
	for i, used := range b.used {
		if b.memory[i] = guard; used {
			b.memory[i] = poison
		}
	}
}

// intact returns an error if a guard byte has changed.
func (b *blocks) intact() error {
	for i, used := range b.used {
		if !used && b.memory[i] != guard {
			return fmt.Errorf("byte %d, outside of all blocks, was written", i)
		}
	}
	return nil
}

// check runs the calls.
func (b *blocks) check(img lowering.Planned, pool *cpu.Pool, calls [][]*tensor.Value) error {
	alone, err := img.Unit(delegate.Instance{Pool: pool})
	if err != nil {
		return err
	}
	defer alone.Close()
	u, err := img.Unit(delegate.Instance{Pool: pool, Blocks: slices.Clone(b.list)})
	if err != nil {
		return err
	}
	defer u.Close()
	for i, args := range calls {
		if err := b.compare(alone, u, args, args[img.Needs().Inputs:]); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

// compare runs a call with both units.
func (b *blocks) compare(alone, u delegate.Unit, args, outputs []*tensor.Value) error {
	wantErr := alone.Execute(context.Background(), args)
	want := contents(args)
	for range 2 {
		for _, v := range outputs {
			for i := range v.Tensor.Data {
				v.Tensor.Data[i] = poison
			}
		}
		b.spoil()
		err := u.Execute(context.Background(), args)
		if (err == nil) != (wantErr == nil) {
			return fmt.Errorf("got error %v, with memory of its own %v", err, wantErr)
		}
		if err := b.intact(); err != nil {
			return err
		}
		if wantErr != nil {
			continue
		}
		for k, got := range contents(args) {
			if !bytes.Equal(got, want[k]) {
				return fmt.Errorf("argument %d: got %x, with memory of its own %x", k, got, want[k])
			}
		}
	}
	return nil
}

// contents returns copies of the bytes of arguments.
func contents(args []*tensor.Value) (list [][]byte) {
	for _, a := range args {
		list = append(list, slices.Clone(a.Tensor.Data))
	}
	return list
}
