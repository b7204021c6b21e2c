package pte_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	pt "github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// TestSharedTables refers to one table many times: each reference takes 4 bytes of the file and
// much more of a Program.
func TestSharedTables(t *testing.T) {
	const n = 200_000
	for list, of := range map[string]string{
		"execution_plan":                                  "execution_plan[0]",
		"execution_plan[0].values":                        "execution_plan[0].values[0]",
		"execution_plan[0].operators":                     "execution_plan[0].operators[0]",
		"execution_plan[0].delegates":                     "execution_plan[0].delegates[0]",
		"execution_plan[0].chains":                        "execution_plan[0].chains[0]",
		"execution_plan[0].chains[0].instructions":        "execution_plan[0].chains[0].instructions[0]",
		"execution_plan[0].chains[0].stacktrace[0].items": "execution_plan[0].chains[0].stacktrace[0].items[0]",
		"segments":   "segments[0]",
		"named_data": "named_data[0]",
	} {
		t.Run(list, func(t *testing.T) {
			f := pt.Describe(pt.Sample(), pt.Layout{})
			pt.Set(f.Root, list, slices.Repeat([]*pt.Node{pt.Find(f.Root, of)}, n))
			data := f.Bytes()
			if p := checkParse(t, data, pte.Parse); p != nil {
				t.Errorf("a program of %d bytes with %d tables", len(data), n)
			}
		})
	}
}

// TestSharedSmall shares tables within the budget, which is valid.
func TestSharedSmall(t *testing.T) {
	f := pt.Describe(pt.Sample(), pt.Layout{})
	list := slices.Repeat([]*pt.Node{pt.Find(f.Root, "execution_plan[0].operators[0]")}, 100)
	pt.Set(f.Root, "execution_plan[0].operators", list)
	p := checkParse(t, f.Bytes(), pte.Parse)
	if p == nil || len(p.Methods[0].Operators) != len(list) {
		t.Errorf("program %+v, want one with %d operators", p, len(list))
	}
}

// TestSharedVectors refers to one long argument list from many instructions.
func TestSharedVectors(t *testing.T) {
	const n = 20_000
	f := pt.Describe(pt.Sample(), pt.Layout{})
	pt.Set(f.Root, "execution_plan[0].chains[0].instructions[0].instr_args.args", make([]pt.Scalar, n))
	pt.Set(f.Root, "execution_plan[0].chains[0].instructions", slices.Repeat([]*pt.Node{pt.Find(f.Root, "execution_plan[0].chains[0].instructions[0]")}, 100))
	if _, err := pte.Parse(f.Bytes(), pte.Limits{}); !errors.Is(err, pte.ErrLimit) {
		t.Errorf("%v, want ErrLimit", err)
	}
	checkParse(t, f.Bytes(), pte.Parse)
}

// midSize returns a program like a transformer of about 30 layers: 6000 values, 2400 instructions.
func midSize() *pte.Program {
	m := pte.Method{Name: "forward", Arenas: []pte.Arena{{Size: 1 << 20}}}
	weight := bytes.Repeat([]byte{1, 2, 3, 4}, 64)
	add := func(v pte.Value) int {
		m.Values = append(m.Values, v)
		return len(m.Values) - 1
	}
	for i := range 40 {
		m.Operators = append(m.Operators, pte.Operator{Name: fmt.Sprintf("aten::operator_%d", i), Overload: "out"})
	}
	chain := pte.Chain{}
	order := []uint8{0, 1}
	for i := range 1200 {
		w := add(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: []int{8, 8}, DimOrder: order, Storage: pte.Constant, Data: weight, Name: "layers.weight"}})
		x := add(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: []int{64, 64}, DimOrder: order, Storage: pte.Planned, Offset: int64(i) * 64}})
		one := add(pte.Value{Kind: tensor.KindInt, Int: int64(i)})
		list := add(pte.Value{Kind: tensor.KindIntList, Items: []int{one, one, one}})
		none := add(pte.Value{Kind: tensor.None})
		for range 2 {
			chain.Instructions = append(chain.Instructions, pte.Instruction{Kind: pte.KernelCall, Index: i % 40, Args: []int{w, x, one, list, none, x, x}})
		}
	}
	m.Chains = []pte.Chain{chain}
	return &pte.Program{Methods: []pte.Method{m}}
}

func BenchmarkParse(b *testing.B) {
	p := midSize()
	data := pt.Write(p, pt.Layout{})
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := pte.Parse(data, pte.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
	values := float64(len(p.Methods[0].Values)) * float64(b.N)
	b.ReportMetric(values/b.Elapsed().Seconds(), "values/s")
}
