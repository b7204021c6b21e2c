package etrun_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
	"github.com/etrun-go/etrun/runtime/trace"
)

// TestArenas checks that instances that use one memory of values compute what they do alone, and that its bytes are counted once.
func TestArenas(t *testing.T) {
	counted := int64(0)
	count := trace.Func{Kinds: trace.Memories, Do: func(e *trace.Event) {
		if e.Name == trace.MemoryPlanned {
			counted += e.Bytes
		}
	}}
	file := ptetest.Transformer{Layers: 2, Dim: 128, Heads: 2, Vocabulary: 96, Context: 256}.File()
	p, err := etrun.Parse(file, etrun.WithDelegates(all.Backends()...), etrun.WithObserver(count))
	if err != nil {
		t.Fatal(err)
	}
	var list [3]*etrun.Method
	for i := range list {
		if list[i], err = p.Load(t.Context(), "", etrun.WithTransientOutputs()); err != nil {
			t.Fatal(err)
		}
	}
	run := func(m *etrun.Method, n int) []float32 {
		tokens, positions := make([]int64, n), make([]int64, n)
		for i := range n {
			tokens[i], positions[i] = int64(i*i%96), int64(i)
		}
		err := errors.Join(etrun.Set(m, 0, tokens, 1, n), etrun.Set(m, 1, positions, n))
		if err = errors.Join(err, m.Execute(t.Context())); err != nil {
			t.Fatal(err)
		}
		out, err := etrun.Get[float32](m, 0)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Clone(out)
	}
	check := func(step string, more int64) {
		t.Helper()
		sum := more
		for _, m := range list {
			sum += m.Memory().Planned
		}
		if counted != sum {
			t.Errorf("%s: %d bytes are counted, want %d", step, counted, sum)
		}
	}
	want := [2][]float32{run(list[0], 200), run(list[0], 70)}
	run(list[1], 200)
	a, err := list[1].DetachArena()
	if err != nil {
		t.Fatal(err)
	}
	if a == nil {
		t.Skip("the system does not move memory")
	}
	check("detached", a.Bytes())
	if _, err := list[1].Output(0); err == nil || a.Bytes() < 300_000 {
		t.Errorf("an output without memory: %v; %d bytes of values", err, a.Bytes())
	}
	if err := list[2].AttachArena(a); err != nil {
		t.Fatal(err)
	}
	check("attached", 0)
	for i, n := range []int{200, 70} {
		for _, m := range list[1:] {
			if !slices.Equal(run(m, n), want[i]) {
				t.Errorf("%d tokens: other logits than with memory of its own", n)
			}
		}
	}
	if err := list[1].AttachArena(a); err != nil { // a is closed
		t.Error(err)
	}
	check("attached again", 0)
	last, err := list[2].DetachArena()
	for _, m := range list {
		err = errors.Join(err, m.Close())
	}
	if err := errors.Join(err, p.Close()); err != nil {
		t.Fatal(err)
	}
	last.Close()
	last.Close()
	if err := list[0].AttachArena(last); !errors.Is(err, etrun.ErrClosed) || counted != 0 {
		t.Errorf("after the end: %v, %d bytes, want ErrClosed and none", err, counted)
	}
}
