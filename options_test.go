package etrun_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// An option whose value has no meaning is never taken for another: opening fails, and the error names it.
func TestOptionsWithoutMeaning(t *testing.T) {
	for want, list := range map[string][]etrun.Option{
		"WithLowering":  {etrun.WithLowering("aut"), etrun.WithLowering("")},
		"WithPlan":      {etrun.WithPlan(etrun.PlanNaive + 1)},
		"WithThreads":   {etrun.WithThreads(-1), etrun.WithThreads(1025), etrun.WithThreads(math.MaxInt)},
		"WithMaxMemory": {etrun.WithMaxMemory(-1)},
		"WithLimits":    {etrun.WithLimits(etrun.Limits{FileBytes: -1}), etrun.WithLimits(etrun.Limits{Format: etrun.FormatLimits{Values: -1}})},
	} {
		for i, o := range list {
			p, err := etrun.Open(stateProgram, o)
			if p != nil {
				p.Close()
			}
			if e, ok := errors.AsType[*etrun.OptionError](err); !ok || e.Option != want || !errors.Is(err, etrun.ErrInput) {
				t.Errorf("%s, value %d: got %v, want an *OptionError", want, i, err)
			}
		}
	}
}

// describedProgram has products with a weight of 4 MiB, which is permuted, and a method that returns a number.
func describedProgram() []byte {
	const rows, n = 4, 1024
	var m pte.Method
	value := func(v pte.Value) int {
		m.Values = append(m.Values, v)
		return len(m.Values) - 1
	}
	floats := func(storage pte.Storage, sizes ...int) int {
		t := &pte.Tensor{DType: tensor.Float32, Sizes: sizes, DimOrder: tensor.ContiguousOrder(len(sizes)), Storage: storage}
		if storage == pte.Constant {
			t.Data = bytes.Repeat([]byte{1, 2, 3, 60}, int(t.NBytes())/4)
		}
		return value(pte.Value{Kind: tensor.KindTensor, Tensor: t})
	}
	number := func(n int64) int { return value(pte.Value{Kind: tensor.KindInt, Int: n}) }
	x, weight, turned := floats(pte.Unplanned, rows, n), floats(pte.Constant, n, n), floats(pte.Unplanned, n, n)
	between, out := floats(pte.Unplanned, rows, n), floats(pte.Unplanned, rows, n)
	dims := value(pte.Value{Kind: tensor.KindIntList, Items: []int{number(1), number(0)}})
	m.Name, m.Inputs, m.Outputs = "forward", []int{x}, []int{out}
	m.Operators = []pte.Operator{{Name: "aten::permute_copy", Overload: "out"}, {Name: "aten::mm", Overload: "out"}}
	m.Chains = []pte.Chain{{Instructions: []pte.Instruction{{Kind: pte.KernelCall, Args: []int{weight, dims, turned, turned}},
		{Kind: pte.KernelCall, Index: 1, Args: []int{x, turned, between, between}}, {Kind: pte.KernelCall, Index: 1, Args: []int{between, turned, out, out}}}}}
	size := pte.Method{Name: "size", Values: []pte.Value{{Kind: tensor.KindInt, Int: n}}, Outputs: []int{0}, Chains: make([]pte.Chain, 1)}
	return ptetest.Write(&pte.Program{Methods: []pte.Method{m, size}}, ptetest.Layout{})
}

// A program that does not run is described as one that does, without its weights.
func TestWithoutRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program.pte")
	if err := os.WriteFile(path, describedProgram(), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	load := func(options ...etrun.Option) (said string, grown int64, err error) {
		p, err := etrun.Open(path, append(options, etrun.WithLeases(), etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo}))...)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		debug.FreeOSMemory()
		before := anonymous()
		m, err := p.Load(ctx, "forward")
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		grown = anonymous() - before
		size, err := p.Load(ctx, "size")
		if err != nil {
			t.Fatal(err)
		}
		defer size.Close()
		if err := size.Execute(ctx); err != nil {
			t.Errorf("a method without weights: %v", err)
		}
		r := m.Report()
		said = fmt.Sprintf("folded %v, lowered %+v, %d bytes given back, planned %d", r.Folded, r.Lowered, r.ReleasedBytes, r.Plan.Bytes())
		_, err = etrun.Run[float32](ctx, m, make([]float32, 4*1024))
		return said, grown, err
	}
	want, _, err := load()
	if err != nil {
		t.Fatal(err)
	}
	got, grown, err := load(etrun.WithoutRuns())
	if got != want || !errors.Is(err, etrun.ErrInput) {
		t.Errorf("got %s, %v\nwant %s, %v", got, err, want, etrun.ErrInput)
	}
	if grown > 2<<20 {
		t.Errorf("the load takes %d bytes beside the file, want at most 2 MiB", grown)
	}
}

// anonymous returns the memory of the process that is no file's, 0 where that is not known.
func anonymous() (n int64) {
	status, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(status), "RssAnon:")
	_, _ = fmt.Sscan(after, &n)
	return n << 10
}
