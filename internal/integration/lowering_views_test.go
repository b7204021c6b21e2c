//go:build linux

package integration

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// Values of viewedProduct.
const (
	viewedInput    = iota // up to 8 rows
	viewedIndex           // an element
	viewedSlice           // some rows of the input
	viewedRows            // a view of them
	viewedFilter          //
	viewedProduct         // the output
	viewedSize            // the number of rows of the input
	viewedElement         // the element
	viewedNone            // no number
	viewedZero            // numbers
	viewedOne             //
	viewedFour            //
	viewedInferred        // -1
	viewedList            // the sizes of the view
)

// viewedProgram is a product of a view with a filter. sizes are those of the view, end is the number of rows that are sliced.
func viewedProgram(sizes []int, end int) []byte {
	float := func(storage pte.Storage, at int64, dynamism tensor.Dynamism, sizes ...int) pte.Value {
		return pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: sizes, Dynamism: dynamism,
			DimOrder: tensor.ContiguousOrder(len(sizes)), Storage: storage, Offset: at}}
	}
	number := func(n int64) pte.Value { return pte.Value{Kind: tensor.KindInt, Int: n} }
	filter := float(pte.Constant, 0, tensor.Static, 4, 16)
	filter.Tensor.Data = tensor.BytesOf(make([]float32, 64))
	for i := range tensor.View[float32](filter.Tensor.Data) {
		tensor.View[float32](filter.Tensor.Data)[i] = float32(i%7) - 3
	}
	index := float(pte.Planned, 512, tensor.Static, 1)
	index.Tensor.DType = tensor.Int64
	m := pte.Method{Name: "forward", Inputs: []int{viewedInput, viewedIndex}, Outputs: []int{viewedProduct}, Arenas: []pte.Arena{{Size: 1600}},
		Values: []pte.Value{float(pte.Planned, 0, tensor.DynamicBound, 1, 8, 4), index, float(pte.Planned, 256, tensor.DynamicBound, 1, 8, 4),
			float(pte.Planned, 256, tensor.DynamicBound, 8, 4), filter, float(pte.Planned, 1024, tensor.DynamicBound, 8, 16),
			number(0), number(0), {}, number(0), number(1), number(4), number(-1), {Kind: tensor.KindIntList, Items: sizes}},
		Operators: []pte.Operator{{Name: "aten::sym_size", Overload: "int"}, {Name: "aten::_local_scalar_dense"},
			{Name: "aten::slice_copy", Overload: "Tensor_out"}, {Name: "executorch_prim::et_view", Overload: "default"}, {Name: "aten::mm", Overload: "out"}},
		Chains: []pte.Chain{{Instructions: []pte.Instruction{
			exectest.Call(0, viewedInput, viewedOne, viewedSize), exectest.Call(1, viewedIndex, viewedElement),
			exectest.Call(2, viewedInput, viewedOne, viewedZero, end, viewedOne, viewedSlice, viewedSlice),
			exectest.Call(3, viewedSlice, viewedList, viewedRows), exectest.Call(4, viewedRows, viewedFilter, viewedProduct, viewedProduct)}}}}
	return ptetest.Write(&pte.Program{Methods: []pte.Method{m}}, ptetest.Layout{})
}

// TestLowerViews checks which products of views are parts of a file, and their results at all sizes: a view that is made outside of
// the part is an input of it, unless it may have no elements.
func TestLowerViews(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes []int
		end   int
		left  bool
	}{
		{"sizes of an input", []int{viewedSize, viewedFour}, viewedSize, false},
		{"an inferred size", []int{viewedInferred, viewedFour}, viewedSize, false},
		{"sizes of an input, of rows whose number is an element", []int{viewedSize, viewedFour}, viewedElement, false},
		{"an element", []int{viewedElement, viewedFour}, viewedSize, true},
		{"an inferred size of rows whose number is an element", []int{viewedInferred, viewedFour}, viewedElement, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := viewedProgram(c.sizes, c.end)
			result, err := lowerFile(data, true, false)
			if err != nil {
				t.Fatal(err)
			}
			why := result.Methods[0].Report.Calls[4].Reason
			if left := strings.Contains(why, "does not run sizes of 0"); left != c.left || left == result.Lowered() || !left && why != "" {
				t.Errorf("the product: %q, %q", why, result.Methods[0].Why)
			}
			for rows := range 8 {
				x := tensor.New(tensor.Float32, 1, rows+1, 4)
				for i := range tensor.View[float32](x.Data) {
					tensor.View[float32](x.Data)[i] = float32(rand.IntN(9) - 4)
				}
				want, got := runViewed(t, data, x, etrun.LowerOff), runViewed(t, result.Data.Bytes(), x, etrun.LowerOff)
				if loaded := runViewed(t, data, x, etrun.LowerAuto); !bytes.Equal(got, want) || !bytes.Equal(loaded, want) {
					t.Errorf("%d rows: got %v, lowered at load %v, want %v", rows+1, got, loaded, want)
				}
			}
		})
	}
}

// runViewed returns the elements of the product, all of whose terms are small integers. The element is the number of rows.
func runViewed(t *testing.T, data []byte, x *tensor.Tensor, lowering etrun.Lowering) []byte {
	t.Helper()
	p, err := etrun.Parse(data, etrun.WithThreads(1), etrun.WithLowering(lowering), etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo}))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := p.Load(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for i, in := range []*tensor.Tensor{x, tensor.Of([]int64{int64(x.Sizes[1])}, 1)} {
		if err := m.SetInput(i, in); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Execute(context.Background()); err != nil {
		t.Fatal(err)
	}
	out, err := m.Output(0)
	if err != nil || out.Tensor.Sizes[0] != x.Sizes[1] {
		t.Fatalf("output %v, %v", out.Tensor, err)
	}
	return bytes.Clone(out.Tensor.Data)
}

// batchesProgram is a product of two views with up to 8 matrices, whose numbers of matrices are values: -1, 8, or the sizes of the inputs.
func batchesProgram(left, right int) []byte {
	const a, b, first, second, product, none, one, eight, rows, cols, inferred, sizeA, sizeB, viewA, viewB = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
	float := func(at int64, sizes ...int) pte.Value {
		return pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: sizes, Dynamism: tensor.DynamicBound,
			DimOrder: tensor.ContiguousOrder(len(sizes)), Storage: pte.Planned, Offset: at}}
	}
	number := func(n int64) pte.Value { return pte.Value{Kind: tensor.KindInt, Int: n} }
	m := pte.Method{Name: "forward", Inputs: []int{a, b}, Outputs: []int{product}, Arenas: []pte.Arena{{Size: 8192}},
		Values: []pte.Value{float(0, 8, 4, 4), float(1024, 8, 4, 4), float(0, 8, 4, 4), float(1024, 8, 4, 4), float(2048, 8, 4, 4),
			number(0), number(1), number(8), number(4), number(4), number(-1), number(0), number(0),
			{Kind: tensor.KindIntList, Items: []int{left, rows, cols}}, {Kind: tensor.KindIntList, Items: []int{right, rows, cols}}},
		Operators: []pte.Operator{{Name: "aten::sym_size", Overload: "int"}, {Name: "executorch_prim::et_view", Overload: "default"},
			{Name: "aten::bmm", Overload: "out"}},
		Chains: []pte.Chain{{Instructions: []pte.Instruction{exectest.Call(0, a, none, sizeA), exectest.Call(0, b, none, sizeB),
			exectest.Call(1, a, viewA, first), exectest.Call(1, b, viewB, second), exectest.Call(2, first, second, product, product)}}}}
	return ptetest.Write(&pte.Program{Methods: []pte.Method{m}}, ptetest.Layout{})
}

// A product is a part of a file if its operands have equal numbers of matrices in every run: the runtimes repeat a single matrix, which
// the operator refuses.
func TestLowerBatches(t *testing.T) {
	for _, c := range []struct {
		name        string
		left, right int
		want        bool
	}{{"one size", 11, 11, true}, {"a number", 7, 7, true}, {"sizes of two inputs", 11, 12, false}, {"inferred sizes", 10, 10, false}, {"one inferred", 10, 11, false}} {
		result, err := lowerFile(batchesProgram(c.left, c.right), true, false)
		if err != nil {
			t.Fatal(err)
		}
		if why := result.Methods[0].Report.Calls[4].Reason; (why == "") != c.want || !c.want && !strings.Contains(why, "repeat an operand") {
			t.Errorf("%s: the product is lowered: %v (%q), want %v", c.name, why == "", why, c.want)
		}
	}
}

// normalizedProgram is a linear layer of as many channels, and a batch norm of its result.
func normalizedProgram(channels int) []byte {
	m := pte.Method{Name: "forward", Inputs: []int{0}, Outputs: []int{7}, Arenas: []pte.Arena{{Size: int64(12 * channels)}},
		Operators: []pte.Operator{{Name: "aten::linear", Overload: "out"}, {Name: "aten::_native_batch_norm_legit_no_training", Overload: "out"}}}
	add := func(x pte.Tensor) {
		x.DType, x.DimOrder = tensor.Float32, tensor.ContiguousOrder(len(x.Sizes))
		if n, _ := tensor.Product(x.Sizes); x.Storage == pte.Constant {
			x.Data = tensor.BytesOf(slices.Repeat([]float32{0.5}, n))
		}
		m.Values = append(m.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &x})
	}
	row := []int{1, channels}
	add(pte.Tensor{Sizes: row, Storage: pte.Planned})
	add(pte.Tensor{Sizes: []int{channels, channels}, Storage: pte.Constant})
	add(pte.Tensor{Sizes: row, Storage: pte.Planned, Offset: int64(4 * channels)})
	for range 4 {
		add(pte.Tensor{Sizes: row[1:], Storage: pte.Constant})
	}
	add(pte.Tensor{Sizes: row, Storage: pte.Planned, Offset: int64(8 * channels)})
	for range 2 {
		add(pte.Tensor{Sizes: []int{0}, Storage: pte.Planned})
	}
	m.Values = append(m.Values, pte.Value{}, pte.Value{Kind: tensor.KindDouble, Double: 1e-5}, pte.Value{Kind: tensor.KindTensorList, Items: []int{7, 8, 9}})
	m.Chains = []pte.Chain{{Instructions: []pte.Instruction{exectest.Call(0, 0, 1, 10, 2, 2), exectest.Call(1, 2, 3, 4, 5, 6, 11, 11, 7, 8, 9, 12)}}}
	return ptetest.Write(&pte.Program{Methods: []pte.Method{m}}, ptetest.Layout{})
}

// The pages of weights that were multiplied by a batch norm are released when a file is lowered: what is written has the products.
func TestLowerReleasesPages(t *testing.T) {
	data := normalizedProgram(1280)
	file, err := os.Create(filepath.Join(t.TempDir(), "normalized.pte"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(data); err != nil {
		t.Fatal(err)
	}
	pages, err := cpu.MapFile(file, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	defer pages.Close()
	pages.Forgettable()
	result, err := lowerFile(pages.Bytes(), true, false)
	if err != nil || !result.Lowered() || len(result.Methods[0].Report.Calls) != 1 {
		t.Fatalf("%v: %+v, want one call, which is lowered", err, result)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, area, _ := strings.Cut(string(smaps), file.Name())
	_, after, _ := strings.Cut(area, "Rss:")
	var resident int64
	if _, err := fmt.Sscan(after, &resident); err != nil || resident<<10 > int64(len(data))/2 {
		t.Errorf("%v: %d KiB of a file of %d are resident, want at most half", err, resident, len(data)>>10)
	}
}
