package native

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/lowering"
	"github.com/etrun-go/etrun/internal/cases"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/callstest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// rejected returns why a call is not lowered, "" if it is.
func rejected(g *regions.Graph, i int) string {
	return lowering.Reject(g, i, Refuses, func(*graph.Graph) string { return "" })
}

// openRegion lowers a graph of operators and opens it in the library.
func openRegion(in *regions.Graph) (*Image, error) {
	g, err := lowering.New(in, false, Refuses).LowerAll()
	if err != nil {
		return nil, err
	}
	if HidesNaN(g) {
		return nil, graph.Unsupported("", "the library hides NaN")
	}
	return openGraph(g, &graph.Compilation{Region: true}, graph.WeightsCache{}, func(error) {})
}

// logarithms is a region that adds the logarithm of its input to the input.
func logarithms(t *testing.T) (*Unit, []*tensor.Value) {
	t.Helper()
	c := callstest.New(1)
	x := c.Input(4, 8)
	c.Outputs(c.Do("aten::add.out", 2, c.Do("aten::log.out", 2, x), x, 1))
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	img, err := openRegion(c.Graph)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	u, err := img.Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	args := c.Arguments()
	for i := range 32 {
		tensor.Data[float32](args[0].Tensor)[i] = 1
	}
	return u.(*Unit), args
}

// TestRepeatedCalls runs calls whose results are NaN: the library runs the first two only, and again the first call whose
// results are numbers. It runs in Go what the library does not, without a second run.
func TestRepeatedCalls(t *testing.T) {
	xnntest.Library(t)
	u, args := logarithms(t)
	x, y := tensor.Data[float32](args[0].Tensor), tensor.Data[float32](args[1].Tensor)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for i, step := range []struct {
		x        float32
		repeated int
	}{{1, 0}, {-1, 1}, {1, 0}, {-1, 1}, {-1, 2}, {-1, 2}, {inf, 2}, {-1, 2}, {1, 0}, {-1, 1}, {nan, 1}, {-1, 2}, {-1, 2}} {
		x[3] = step.x
		run(t, u, args)
		want := math.Log(float64(step.x)) + float64(step.x)
		if got := float64(y[3]); got != want && !(math.IsNaN(got) && math.IsNaN(want)) || u.Repeated != step.repeated {
			t.Errorf("call %d of %v: got %v and %d calls that ran twice, want %v and %d", i, step.x, got, u.Repeated, want, step.repeated)
		}
	}
	if n := testing.AllocsPerRun(20, func() { run(t, u, args) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestRepeatedInPlace runs calls whose result replaces the input: each runs in the library first, as a run in Go would leave
// no input for it.
func TestRepeatedInPlace(t *testing.T) {
	xnntest.Library(t)
	u, args := logarithms(t)
	x := tensor.Data[float32](args[0].Tensor)
	args[1].Tensor.Bind(args[0].Tensor.Data)
	repeated := 0
	for i, first := range []float32{-1, -1, -1, 2, 1} {
		for k := range x {
			x[k] = 1
		}
		x[0] = first
		run(t, u, args)
		want := math.Log(float64(first)) + float64(first)
		if repeated++; first > 0 {
			repeated = 0
		}
		if u.Repeated != repeated {
			t.Errorf("call %d: %d calls ran twice, want %d", i, u.Repeated, repeated)
		}
		if got := float64(x[0]); x[1] != 1 || math.Abs(got-want) > 1e-6 || math.IsNaN(got) != math.IsNaN(want) {
			t.Errorf("call %d of %v: got %v and %v, want %v and 1", i, first, got, x[1], want)
		}
	}
}

// TestRepeatedProfile measures calls that the Go engine runs: the nodes are its own.
func TestRepeatedProfile(t *testing.T) {
	xnntest.Library(t)
	u, args := logarithms(t)
	if err := u.SetProfiling(true); err != nil {
		t.Fatal(err)
	}
	var names [4]string
	for i, x := range []float32{1, -1, -1, -1} {
		tensor.Data[float32](args[0].Tensor)[0] = x
		run(t, u, args)
		for _, n := range u.Profile(nil) {
			names[i] += n.Name + ";"
		}
	}
	if names[0] == "" || names[1] == "" || names[0] == names[1] || names[1] != names[2] || names[1] != names[3] {
		t.Errorf("got nodes %q, want the first of the library, the others of the Go engine", names)
	}
}

// TestCallsBefore runs random regions on random lists of inputs, some of which make NaN and infinities: each result has the
// bytes that a unit computes which has run nothing before.
func TestCallsBefore(t *testing.T) {
	xnntest.Library(t)
	twice, failed := 0, 0
	for seed := range graphtest.Rounds(cases.Of(200, 600)) {
		w := callstest.NewRandom(uint64(seed), 1+seed%6, false, rejected)
		if len(w.Graph.Calls) == 0 || len(w.Graph.Outputs) == 0 || w.Err != nil {
			continue
		}
		n, err := runHistory(w, 12)
		if twice += n; err != nil {
			if failed++; failed < 20 {
				t.Errorf("seed %d: %v\n%v", seed, err, w)
			}
		}
	}
	t.Logf("%d calls ran in Go first", twice)
	if twice == 0 {
		t.Error("no call ran in Go first")
	}
}

// runHistory runs one unit on several inputs, and a new unit on each. It returns how many calls began in Go.
func runHistory(w *callstest.Random, steps int) (inGo int, err error) {
	img, err := openRegion(w.Graph)
	if err != nil {
		return 0, nil // checked elsewhere
	}
	defer img.Close()
	u, err := img.Unit(delegate.Instance{})
	if err != nil {
		return 0, err
	}
	defer u.Close()
	args := w.Arguments()
	special := false
	for step := range steps {
		if w.Rand.IntN(4) == 0 {
			special = !special
		}
		fillInputs(w, args, special)
		if n, ok := u.(*Unit); ok && n.Repeated > 1 {
			inGo++
		}
		if err := u.Execute(context.Background(), args); err != nil {
			return inGo, err
		}
		if err := sameAlone(w, img, args); err != nil {
			return inGo, fmt.Errorf("call %d: %w", step, err)
		}
	}
	return inGo, nil
}

// fill writes random numbers to the inputs, or among them some that are finite, but beyond what sums and functions bear.
func fillInputs(w *callstest.Random, args []*tensor.Value, special bool) {
	for i := range w.Graph.Inputs {
		t := args[i].Tensor
		if t.DType != tensor.Float32 || t.Numel() == 0 {
			continue
		}
		x := tensor.Data[float32](t)
		for k := range x {
			x[k] = 0.1 + w.Rand.Float32()
		}
		if special {
			x[w.Rand.IntN(len(x))] = [...]float32{0, -1, 0x1p62, -0x1p62}[w.Rand.IntN(4)]
		}
	}
}

// sameAlone compares the outputs of a call with those of a unit that has run no other.
func sameAlone(w *callstest.Random, img *Image, args []*tensor.Value) error {
	u, err := img.Unit(delegate.Instance{})
	if err != nil {
		return err
	}
	defer u.Close()
	alone := append(slices.Clone(args[:len(w.Graph.Inputs)]), w.Arguments()[len(w.Graph.Inputs):]...)
	if err := u.Execute(context.Background(), alone); err != nil {
		return err
	}
	for i := len(w.Graph.Inputs); i < len(args); i++ {
		if !bytes.Equal(args[i].Tensor.Data, alone[i].Tensor.Data) {
			return fmt.Errorf("output %d differs from that of a unit without calls before", i-len(w.Graph.Inputs))
		}
	}
	return nil
}
