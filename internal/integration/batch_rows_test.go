//go:build linux

package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
)

// TestRows runs random programs, in which a tensor may be several operands of a call, with several rows. If [etrun.Method.CheckRows] finds
// the rows independent, each must be what a call with it alone computes. Then it runs instances of one row in an [etrun.Batch]: each
// must have its own results.
func TestRows(t *testing.T) {
	c := &campaign.Campaign{Test: "TestRows", Usual: 100, Memory: 1 << 30,
		Counters: []string{"programs", "calls", "calls of independent rows", "batches", "rows that fail alone"},
		Start: func(t *testing.T, p *campaign.Process) func(seed uint64) error {
			ways := sizedWays()
			return func(seed uint64) error {
				p.Count(0, 1)
				s := newRows(rand.New(rand.NewPCG(seed, 14)))
				if len(s.M.Outputs) == 0 {
					return nil
				}
				for _, w := range ways {
					if err := (&rowed{s, w, seed, false, p.Count}).check(); err != nil {
						return &campaign.Finding{Kind: "rows", Message: fmt.Sprintf("%s: %v", w.name, err)}
					}
				}
				return nil
			}
		}}
	c.Run(t)
}

// rowed is a program, and a way to run it.
type rowed struct {
	*sized
	way
	seed  uint64
	exact bool // instances together compute the bits of each alone
	count func(counter, n int)
}

func (w *rowed) check() error {
	p, err := etrun.Parse(w.file(), slices.Concat(w.options, []etrun.Option{etrun.WithOperatorSet(sizedOps)})...)
	if err != nil {
		return err
	}
	defer p.Close()
	var list [4]*etrun.Method
	for i := range list {
		if list[i], err = p.Load(context.Background(), ""); err != nil {
			return err
		}
		defer list[i].Close()
	}
	r := rand.New(rand.NewPCG(w.seed, 15))
	for range 3 {
		sizes, n := w.sizesOf(r), 2+r.IntN(w.bounds[0]-1)
		for i := range sizes {
			sizes[i][0] = n
		}
		if err := w.checkCall(list[0], list[1], sizes, n); err != nil {
			return fmt.Errorf("sizes %v: %w\n%s", sizes, err, exectest.Listing(list[0].Report().Plan))
		}
		if err := w.checkBatch(list, sizes); err != nil {
			return fmt.Errorf("batch, sizes %v: %w\n%s", sizes, err, exectest.Listing(list[0].Report().Plan))
		}
	}
	return nil
}

// inputs returns inputs of the program.
func (w *rowed) inputs(sizes [][]int, seed uint64) (list []*tensor.Tensor) {
	r := rand.New(rand.NewPCG(seed, 12))
	for _, at := range sizes {
		x := tensor.New(tensor.Float32, at...)
		for k := range tensor.Data[float32](x) {
			tensor.Data[float32](x)[k] = float32(4*r.Float64() - 2)
		}
		list = append(list, x)
	}
	return list
}

// checkCall compares a call of n rows with calls of each.
func (w *rowed) checkCall(m, alone *etrun.Method, sizes [][]int, n int) error {
	w.count(1, 1)
	in := w.inputs(sizes, w.seed)
	together, err := callInputs(m, in)
	if err != nil || m.CheckRows() != nil {
		return nil // of these sizes, or not independent
	}
	w.count(2, 1)
	for row := range n {
		var own []*tensor.Tensor
		for _, x := range in {
			own = append(own, rowOf(x, row, n))
		}
		want, err := callInputs(alone, own)
		if err != nil {
			w.count(4, 1)
			continue
		}
		var got []*tensor.Tensor
		for _, y := range together {
			got = append(got, rowOf(y, row, n))
		}
		if err := sameResults(got, want, sizedTolerance(m)); err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
	}
	return nil
}

// rowOf returns one of n rows, which are one after the other in memory.
func rowOf(x *tensor.Tensor, row, n int) *tensor.Tensor {
	c := tensor.Make(x.DType, append([]int{1}, x.Sizes[1:]...), x.DimOrder, tensor.Static)
	c.Bind(tensor.AlignedBytes(c.NBytes()))
	copy(c.Data, x.Data[row*len(c.Data):])
	return c
}

// callInputs runs a method, and returns copies of its outputs.
func callInputs(m *etrun.Method, in []*tensor.Tensor) (outputs []*tensor.Tensor, err error) {
	if err := setInputs(m, in); err != nil {
		return nil, err
	}
	if err := m.Execute(context.Background()); err != nil {
		return nil, err
	}
	return copiesOf(m)
}

func setInputs(m *etrun.Method, in []*tensor.Tensor) error {
	for i, x := range in {
		if err := m.SetInput(i, x); err != nil {
			return err
		}
	}
	return nil
}

func copiesOf(m *etrun.Method) (list []*tensor.Tensor, err error) {
	for i := range m.NumOutputs() {
		v, err := m.Output(i)
		if err != nil {
			return nil, err
		}
		if v.Tensor.Rank() > 0 && v.Tensor.DimOrder[0] != 0 {
			return nil, errors.New("an output whose rows are not one after the other")
		}
		c := tensor.Make(v.Tensor.DType, v.Tensor.Sizes, v.Tensor.DimOrder, tensor.Static)
		c.Bind(slices.Clone(v.Tensor.Data))
		list = append(list, c)
	}
	return list, nil
}

// checkBatch runs three instances of one row each in a batch, and compares them with calls of another one.
func (w *rowed) checkBatch(list [4]*etrun.Method, sizes [][]int) error {
	one := make([][]int, len(sizes))
	for i := range sizes {
		one[i] = append([]int{1}, sizes[i][1:]...)
	}
	const n = 3
	var want [n][]*tensor.Tensor
	for k := range n {
		out, err := callInputs(list[n], w.inputs(one, w.seed+uint64(k)))
		if err != nil {
			return nil
		}
		want[k] = out
	}
	if _, err := callInputs(list[0], w.inputs(one, w.seed)); err != nil {
		return err
	}
	b, err := list[0].NewBatch(context.Background(), n)
	if err != nil {
		return nil
	}
	defer b.Close()
	w.count(3, 1)
	for k := range n {
		if err := setInputs(list[k], w.inputs(one, w.seed+uint64(k))); err != nil {
			return err
		}
	}
	errs := make([]error, n)
	if err := b.Execute(context.Background(), list[:n], errs); err != nil {
		return err
	}
	for k := range min(n, b.Rows()) {
		if _, other := errors.AsType[*etrun.BatchError](errs[k]); other {
			continue
		}
		if errs[k] != nil {
			return errs[k]
		}
		got, err := copiesOf(list[k])
		if err != nil {
			return err
		}
		tolerance := sizedTolerance(list[0])
		if w.exact {
			tolerance = 0
		}
		if err := sameResults(got, want[k], tolerance); err != nil {
			return fmt.Errorf("instance %d of %d: %w", k, n, err)
		}
	}
	return nil
}

// equalOperands yields programs of one call whose operands are one tensor of up to 4 rows: for sizes, types and small numbers with
// which the operator runs.
func equalOperands(op string, sig *kernels.Signature, yield func(s *sized)) {
	for _, dims := range [][]int{{0}, {0, -4}, {0, 0}, {0, -3, -3}, {0, -2, -2, -2}} {
		for _, d := range []tensor.DType{tensor.Float32, tensor.Int64, tensor.Bool} {
			for number := -1; number <= 1; number++ {
				for _, optional := range []bool{false, true} {
					if number > -1 && !hasArgument(sig, "int") && d == tensor.Float32 || optional && !hasArgument(sig, "tensor?") {
						continue
					}
					if s := equalResult(op, sig, dims, d, number, optional); s != nil {
						yield(s)
					}
				}
			}
		}
	}
}

func hasArgument(sig *kernels.Signature, typ string) bool {
	return slices.ContainsFunc(sig.Args, func(a kernels.Arg) bool { return strings.Contains(strings.ToLower(a.Type), typ) })
}

// equalResult finds the rank and the type of the results.
func equalResult(op string, sig *kernels.Signature, dims []int, d tensor.DType, number int, optional bool) *sized {
	for _, rank := range []int{len(dims), len(dims) + 1, len(dims) - 1, len(dims) + 2} {
		for _, to := range []tensor.DType{d, tensor.Float32, tensor.Int64, tensor.Bool, tensor.Complex64} {
			if s := equalCall(op, sig, dims, d, number, out{rank: rank, dtype: to}, optional); s != nil {
				return s
			}
		}
	}
	return nil
}

// equalCall returns a program, nil if the call fails.
func equalCall(op string, sig *kernels.Signature, dims []int, d tensor.DType, number int, result out, optional bool) *sized {
	s := emptySized(rand.New(rand.NewPCG(1, 16)), 2)
	s.bounds = []int{4}
	y := s.made("aten::sigmoid.out", len(dims), s.input(nil, dims...))
	if d != tensor.Float32 {
		threshold := 0.5
		if number == 0 {
			threshold = 2 // zeros are indices of any tensor
		}
		y, _ = s.do("aten::gt.Scalar_out", []out{{rank: len(dims), dtype: d}}, y, threshold)
	}
	var args []any
	var outs []out
	for i := range sig.Args {
		switch a := &sig.Args[i]; {
		case a.Out:
			outs = append(outs, result)
		case a.Type == "Tensor?" && !optional || a.Type == "str?":
			args = append(args, nil)
		case a.Name == "reduce" && strings.Contains(op, "two"):
			args = append(args, "sum")
		default:
			args = append(args, equalArgument(strings.TrimSuffix(a.Type, "?"), y, number))
		}
	}
	z, ok := s.do(op, outs, args...)
	if !ok {
		return nil
	}
	s.M.Outputs = []int{int(z)}
	s.declare()
	return s
}

func equalArgument(typ string, y val, number int) any {
	typ, list, _ := strings.Cut(typ, "[")
	typ = strings.TrimSuffix(typ, "?")
	switch {
	case typ == "Tensor" && list != "":
		return []val{y, y}
	case typ == "Tensor":
		return y
	case typ == "int" || typ == "SymInt":
		if list != "" {
			return []int{number}
		}
		return number
	case typ == "bool":
		return false
	case typ == "float" && list == "":
		return 0.5
	case typ == "Scalar":
		return 1
	case typ == "str":
		return "add"
	}
	return nil
}

// distinct are the operators of known flow that do not accept one tensor as several operands, or not of rows that vary.
var distinct = func() map[string]string {
	const types, sizes = "types differ", "sizes differ"
	m := map[string]string{"aten::_native_batch_norm_legit_no_training.out": sizes, "aten::native_group_norm.out": sizes, "aten::fill.Tensor_out": sizes,
		"quantized_decomposed::add.out": "codes of 8 bits: see runtime/rows", "quantized_decomposed::quantize_per_tensor.Tensor_out": types,
		"quantized_decomposed::mixed_linear.out": types, "quantized_decomposed::mixed_mm.out": types,
		"quantized_decomposed::quantize_per_channel.out": types, "quantized_decomposed::quantize_per_token.out": types,
		"quantized_decomposed::dequantize_per_channel.out": types, "quantized_decomposed::dequantize_per_token.out": types,
		"quantized_decomposed::dequantize_per_tensor.Tensor_out": types}
	for _, width := range []string{"2bit", "4bit", "byte"} {
		m["quantized_decomposed::embedding_"+width+".out"], m["quantized_decomposed::embedding_"+width+".dtype_out"] = types, types
	}
	return m
}()

// TestEqualOperands runs a call of each operator with one tensor as all operands, in instances together and alone: the results are
// the same bits.
func TestEqualOperands(t *testing.T) {
	set := sizedOps
	batches := 0
	for _, name := range set.Names() {
		op, sig, _, err := set.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if op.Flow == opclass.Mixed || operands(sig) < 2 {
			continue
		}
		found := 0
		equalOperands(name, sig, func(s *sized) {
			if found++; !cases.Every(5, found-1) {
				return
			}
			w := &rowed{s, way{name, []etrun.Option{etrun.WithLowering(etrun.LowerOff)}}, 1, true, func(counter, n int) {
				if counter == 3 {
					batches += n
				}
			}}
			if err := w.check(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if _, ok := distinct[name]; ok == (found > 0) {
			t.Errorf("%s: %d calls, excepted: %v", name, found, ok)
		}
	}
	t.Logf("%d batches", batches)
}

// operands counts the tensors that an operator reads; a list has two.
func operands(sig *kernels.Signature) (n int) {
	for _, a := range sig.Args {
		switch {
		case a.Out || !strings.HasPrefix(a.Type, "Tensor"):
		case strings.Contains(a.Type, "["):
			n += 2
		default:
			n++
		}
	}
	return n
}
