package xnnpack

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// guarded allocates the blocks of a workspace, with other bytes behind each.
func guarded(w *delegate.Workspace) (blocks [][]byte, intact func() bool) {
	const guard = 64
	for _, b := range w.Blocks {
		memory := tensor.AlignedBytes(int(b.Bytes) + guard)
		for i := range memory {
			memory[i] = 0xA5
		}
		blocks = append(blocks, memory[:b.Bytes])
	}
	return blocks, func() bool {
		return !slices.ContainsFunc(blocks, func(b []byte) bool {
			return !bytes.Equal(b[len(b):len(b)+guard], bytes.Repeat([]byte{0xA5}, guard))
		})
	}
}

// TestBlocks runs units with blocks of a memory plan that contain other data before each run, at the
// declared sizes and at other ones. Results are those of units with their own memory.
func TestBlocks(t *testing.T) {
	inBlocks, elsewhere := 0, 0
	list := samples(1)
	for i, g := range []*graph{chainGraph(16), chainGraph(512), linearGraph(fp32), planesGraph(3, 7, 5, 14, 15, 0, false)} {
		list = append(list, sample{name: fmt.Sprint("graph ", i), graph: g})
	}
	for _, s := range list {
		img, err := compile(t, encode(s.graph), EngineReference)
		if err != nil {
			continue
		}
		w := img.(delegate.Planned).Workspace()
		if w == nil {
			continue
		}
		blocks, intact := guarded(w)
		u, err := img.Unit(delegate.Instance{Blocks: blocks})
		if err != nil {
			t.Fatal(err)
		}
		alone, err := img.Unit(delegate.Instance{})
		if err != nil {
			t.Fatal(err)
		}
		e, m := u.(*reference), newMaker(3)
		for run := range 6 {
			args := m.arguments(e.graph)
			if run%2 == 1 {
				args = m.resized(e.graph)
			}
			want, wantErr := runAlone(alone, args)
			for _, b := range blocks {
				for i := range b {
					b[i] = 0xFF
				}
			}
			if err := u.Execute(context.Background(), args); (err == nil) != (wantErr == nil) {
				t.Fatalf("%s, run %d: %v, want %v", s.name, run, err, wantErr)
			}
			if got := dataOf(args); wantErr == nil && !slices.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("%s, run %d: got %x, want %x", s.name, run, got, want)
			}
			if !intact() {
				t.Fatalf("%s, run %d: bytes behind a block were written", s.name, run)
			}
			if e.places == e.planned {
				inBlocks++
			} else {
				elsewhere++
			}
		}
		img.Close()
	}
	if inBlocks < 3*len(list)/2 || elsewhere == 0 {
		t.Errorf("%d runs in blocks and %d elsewhere, of %d graphs", inBlocks, elsewhere, len(list))
	}
}

// runAlone runs a unit and returns the bytes of its arguments.
func runAlone(u delegate.Unit, args []*tensor.Value) ([][]byte, error) {
	err := u.Execute(context.Background(), args)
	return dataOf(args), err
}

func dataOf(args []*tensor.Value) (list [][]byte) {
	for _, a := range args {
		list = append(list, slices.Clone(a.Tensor.Data))
	}
	return list
}

// TestWorkspaceSpans checks when the arguments of a chain are used.
func TestWorkspaceSpans(t *testing.T) {
	m := newMaker(7)
	x, y := m.input(fp32, 2, 64), m.input(fp32, 2, 64)
	a, b, c, d := m.value(fp32, 2, 64), m.value(fp32, 2, 64), m.value(fp32, 2, 64), m.value(fp32, 2, 64)
	m.node("Square", []int{x}, []int{a})
	m.node("Add", []int{a, y}, []int{b})
	m.node("Softmax", []int{b}, []int{c})
	m.node("Softmax", []int{b}, []int{d})
	img, err := compile(t, encode(m.done(b, c, d)), EngineReference)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	w := img.(delegate.Planned).Workspace()
	if got, want := fmt.Sprint(w.Moments, w.Args), "4 [{0 0} {0 1} {1 3} {2 3} {3 3}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
