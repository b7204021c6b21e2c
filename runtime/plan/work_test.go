package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// workMethod has storages of kib KiB each, one value in each, and calls of delegates. An argument that
// no earlier step has written is an input of the method.
func workMethod(kib int, calls ...ir.Step) *ir.Method {
	m := &ir.Method{Steps: calls, Arenas: []int64{0}}
	for i := range calls {
		for k, v := range calls[i].Args {
			for len(m.Storages) <= v {
				n := len(m.Storages)
				m.Values = append(m.Values, ir.Value{Kind: tensor.KindTensor, Storage: n, Tensor: &ir.Tensor{DType: tensor.Uint8, Sizes: []int{kib << 10}}})
				m.Storages = append(m.Storages, ir.Storage{Values: []int{n}, Bytes: int64(kib) << 10, First: i, Last: i, Planned: true, Offset: int64(n*kib) << 10})
			}
			s := &m.Storages[v]
			if s.Last = i; k < calls[i].Inputs && s.First == i {
				s.Kind, s.First = ir.Input, -1
			}
		}
	}
	m.Arenas[0] = int64(len(m.Storages)*kib) << 10
	return m
}

func call(d, inputs int, args ...int) ir.Step {
	return ir.Step{Kind: ir.DelegateCall, Delegate: d, Inputs: inputs, Args: args}
}

func block(kib, first, last int) lowering.Block {
	return lowering.Block{Bytes: int64(kib) << 10, Span: lowering.Span{First: first, Last: last}}
}

// TestWorkspaces plans calls of one input and one output, each of 4 KiB, whose blocks are used at three
// moments.
func TestWorkspaces(t *testing.T) {
	use := &lowering.Workspace{Moments: 3, Blocks: []lowering.Block{block(4, 0, 1), block(4, 1, 2)},
		Args: []lowering.Span{{First: 0, Last: 0}, {First: 2, Last: 2}}}
	whole := &lowering.Workspace{Moments: 1, Blocks: []lowering.Block{block(4, 0, 0)}, Args: make([]lowering.Span, 2)}
	coarse := workMethod(4, call(0, 1, 0, 1))
	coarse.Coarse = true
	for _, c := range []struct {
		name    string
		m       *ir.Method
		work    []*lowering.Workspace
		options Options
		own     int // KiB
		file    int
	}{
		{"none", workMethod(4, call(0, 1, 0, 1)), nil, Options{}, 8, 8},
		{"two at each moment", workMethod(4, call(0, 1, 0, 1)), []*lowering.Workspace{use}, Options{}, 8, 16},
		{"naive", workMethod(4, call(0, 1, 0, 1)), []*lowering.Workspace{use}, Options{Mode: Naive}, 16, 16},
		{"the input is kept", workMethod(4, call(0, 1, 0, 1)), []*lowering.Workspace{use}, Options{Preserve: true}, 12, 16},
		{"the caller's input", workMethod(4, call(0, 1, 0, 1)), []*lowering.Workspace{use}, Options{BoundInputs: true}, 8, 16},
		{"lives are not known", coarse, []*lowering.Workspace{use}, Options{}, 16, 16},
		{"other arguments", workMethod(4, call(0, 1, 0, 1, 2)), []*lowering.Workspace{use}, Options{}, 12, 12},
		{"one moment", workMethod(4, call(0, 1, 0, 1)), []*lowering.Workspace{whole}, Options{}, 12, 12},
		{"two delegates", workMethod(4, call(0, 1, 0, 1), call(1, 1, 1, 2)), []*lowering.Workspace{use, use}, Options{}, 8, 20},
		{"two calls", workMethod(4, call(0, 1, 0, 1), call(0, 1, 1, 2)), []*lowering.Workspace{use}, Options{}, 12, 20},
		{"the first has none", workMethod(4, call(0, 1, 0, 1), call(1, 1, 1, 2)), []*lowering.Workspace{nil, use}, Options{}, 8, 20},
		{"not called", workMethod(4, call(0, 1, 0, 1)), []*lowering.Workspace{nil, use}, Options{}, 8, 8},
	} {
		p := Make(c.m, c.work, nil, c.options)
		if own, file := p.Own.Size()>>10, p.File.Size()>>10; own != int64(c.own) || file != int64(c.file) {
			t.Errorf("%s: own %d KiB, file %d, want %d and %d", c.name, own, file, c.own, c.file)
		}
		checkPlaces(t, c.name, p)
	}
}

// checkPlaces checks that both plans are safe and complete.
func checkPlaces(t *testing.T, name string, p *Memory) {
	t.Helper()
	for _, a := range []*Arrangement{&p.Own, &p.File} {
		if got := verify(p.Items, a.Places); len(got) > 0 || !a.Whole {
			t.Errorf("%s, %s: %v, whole %v", name, a.Source, got, a.Whole)
		}
		for i, it := range p.Items {
			if it.Bytes > 0 && !a.Placed[i] {
				t.Errorf("%s, %s: item %d has no place", name, a.Source, i)
			}
		}
	}
	for d := range p.work {
		from, to := p.Blocks(d)
		for i := from; i < to; i++ {
			if at := p.Places[i].Offset; at%tensor.Alignment != 0 {
				t.Errorf("%s: block %d of delegate %d is at %d", name, i-from, d, at)
			}
		}
	}
}

// An input whose bytes become those of a block, or of an output, is clobbered.
func TestWorkspaceClobbersInputs(t *testing.T) {
	use := &lowering.Workspace{Moments: 2, Blocks: []lowering.Block{block(4, 1, 1)}, Args: []lowering.Span{{First: 0, Last: 0}, {First: 0, Last: 1}}}
	p := Make(workMethod(4, call(0, 1, 0, 1)), []*lowering.Workspace{use}, nil, Options{Mode: Own})
	marks := make([]bool, 2)
	if p.MarkShared(marks); !marks[0] {
		t.Errorf("not marked: %v at %v", p.Items, p.Places)
	}
}

// A delegate that no step calls has no blocks: the file's plan may have no arena for them.
func TestWorkspaceOfNoCall(t *testing.T) {
	use := &lowering.Workspace{Moments: 1, Blocks: []lowering.Block{block(4, 0, 0)}}
	p := Make(&ir.Method{}, []*lowering.Workspace{use}, nil, Options{Mode: File})
	if from, to := p.Blocks(0); p.Source != "file" || from != to {
		t.Errorf("%s plan: got blocks %d to %d, want none", p.Source, from, to)
	}
}

func TestStepsOfMoments(t *testing.T) {
	use := &lowering.Workspace{Moments: 3, Args: make([]lowering.Span, 2)}
	p := Make(workMethod(4, call(1, 1, 0, 1), call(0, 1, 1, 2), call(1, 1, 2, 3)), []*lowering.Workspace{use}, nil, Options{})
	var got []int
	for k := -1; k <= 5; k++ {
		got = append(got, p.Step(k))
	}
	if want := []int{-1, 0, 1, 1, 1, 2, 3}; !slices.Equal(got, want) || fmt.Sprint(p.Moments) != "[0 1 4 5]" {
		t.Errorf("got %v of %v, want %v", got, p.Moments, want)
	}
}

// TestCheckFileUnused checks that a storage that no step uses may lie on another one in the file's plan, and one that is used may not.
func TestCheckFileUnused(t *testing.T) {
	for _, used := range []bool{false, true} {
		m := workMethod(1, call(0, 1, 0, 1), call(0, 1, 1, 2))
		m.Storages[1].Offset, m.Storages[2].Last = m.Storages[2].Offset, len(m.Steps)
		if !used {
			m.Storages[1].First, m.Storages[1].Last = 1, -1
		}
		if got := CheckFile(m); (len(got) > 0) != used {
			t.Errorf("used %v: conflicts %v", used, got)
		}
	}
}
