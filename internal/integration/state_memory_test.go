//go:build linux

package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/compile"
	"github.com/etrun-go/etrun/runtime/compile/compiletest"
	"github.com/etrun-go/etrun/runtime/pte"
)

func storeKept(d tensor.DType, data []byte, i int, x float64) {
	switch to := data[i*d.Size():]; d {
	case tensor.Float32:
		copy(to, tensor.BytesOf([]float32{float32(x)}))
	case tensor.Float16:
		copy(to, tensor.BytesOf([]uint16{tensor.FloatToHalf(float32(x))}))
	case tensor.Int64:
		copy(to, tensor.BytesOf([]int64{int64(x)}))
	case tensor.Bool:
		to[0] = byte(min(1, int(max(x, -x))))
	default:
		to[0] = byte(int8(x))
	}
}

func loadKept(d tensor.DType, data []byte, i int) float64 {
	switch from := data[i*d.Size() : (i+1)*d.Size()]; d {
	case tensor.Float32:
		return float64(tensor.View[float32](from)[0])
	case tensor.Float16:
		return float64(tensor.HalfToFloat(tensor.View[uint16](from)[0]))
	case tensor.Int64:
		return float64(tensor.View[int64](from)[0])
	default:
		return float64(int8(from[0]))
	}
}

// keptMemory executes programs as their files say, by plain loops on the arenas of the file.
type keptMemory [2][]byte

func newKeptMemory(list []*keeper) (mem keptMemory) {
	for _, k := range list {
		for i, a := range k.m.Arenas {
			if int64(len(mem[i])) < a.Size {
				mem[i] = make([]byte, a.Size)
			}
		}
	}
	for _, s := range list[0].states {
		t := list[0].m.Values[s].Tensor
		copy(mem[t.Arena][t.Offset:], t.Data)
	}
	return mem
}

func (mem *keptMemory) bytes(t *pte.Tensor) []byte {
	if t.Storage == pte.Constant {
		return t.Data
	}
	return mem[t.Arena][t.Offset:]
}

func (mem *keptMemory) set(t *pte.Tensor, f func(i int) float64) {
	n, _ := tensor.Product(t.Sizes)
	for i, x := range func() (list []float64) {
		for i := range n {
			list = append(list, f(i))
		}
		return list
	}() {
		storeKept(t.DType, mem.bytes(t), i, x)
	}
}

// run executes a method and returns its output.
func (mem *keptMemory) run(k *keeper, inputs [][]float64) (out []float32) {
	for i, v := range k.m.Inputs {
		mem.set(k.m.Values[v].Tensor, func(e int) float64 { return inputs[i][e] })
	}
	list := k.m.Chains[0].Instructions
	for at := 0; at < len(list); {
		in := &list[at]
		at++
		switch in.Kind {
		case pte.JumpFalseCall:
			c := &k.m.Values[in.Index]
			if !c.Bool && (c.Tensor == nil || mem.bytes(c.Tensor)[0] == 0) {
				at = in.Target
			}
		case pte.MoveCall:
			mem.copied(k, in.Target, in.Index)
		default:
			mem.call(k, k.m.Operators[in.Index].FullName(), in.Args)
		}
	}
	t := k.m.Values[k.m.Outputs[0]].Tensor
	for i := range keptElements {
		out = append(out, float32(loadKept(t.DType, mem.bytes(t), i)))
	}
	return out
}

// copied converts the elements of a value, as many as the destination has.
func (mem *keptMemory) copied(k *keeper, to, from int) {
	t, f := k.m.Values[to].Tensor, k.m.Values[from].Tensor
	mem.set(t, func(i int) float64 { return loadKept(f.DType, mem.bytes(f), i) })
}

func (mem *keptMemory) call(k *keeper, op string, args []int) {
	x := func(arg, i int) float64 {
		t := k.m.Values[args[arg]].Tensor
		return loadKept(t.DType, mem.bytes(t), i)
	}
	to := k.m.Values[args[len(args)-1]].Tensor
	switch op {
	case "aten::add.out":
		mem.set(to, func(i int) float64 { return x(0, i) + x(1, i) })
	case "aten::clamp.out":
		low, high := k.m.Values[args[1]].Int, k.m.Values[args[2]].Int
		mem.set(to, func(i int) float64 { return min(max(x(0, i), float64(low)), float64(high)) })
	case "aten::mm.out":
		mem.set(to, func(i int) (sum float64) {
			for n := range 4 {
				sum += x(0, i/4*4+n) * x(1, 4*n+i%4)
			}
			return sum
		})
	case "aten::copy_":
		mem.copied(k, args[0], args[1])
	case "aten::index_put_":
		part := *k.m.Values[args[2]].Tensor
		to := *to
		to.Sizes = part.Sizes
		mem.set(&to, func(i int) float64 { return loadKept(part.DType, mem.bytes(&part), i) })
	case "aten::view_copy.out", "aten::slice_copy.Tensor_out", "dim_order_ops::_to_dim_order_copy.out":
		mem.copied(k, args[len(args)-1], args[0])
	default:
		panic(op)
	}
}

// quantizeKept quantizes a lowered program. Its file has the results of a trial of the same layers, and runs that measure have its own.
func quantizeKept(list []*keeper, lowered []byte, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 33))
	go1 := xnnpack.Backend{Engine: xnnpack.EngineGo}
	q, err := compile.OpenQuantization(lowered, compile.QuantizeOptions{By: xnnpack.Writer{Backend: go1}, Operators: etrun.DefaultOperators(),
		Scheme: lowering.Scheme{Name: lowering.SchemeNames[r.IntN(len(lowering.SchemeNames))], All: true, Group: 32}})
	if err != nil {
		return err
	}
	run := func(file []byte, by delegate.Backend, compare func(got, want []float32) error) error {
		_, err := compareKept(list, file, way{"", []etrun.Option{etrun.WithDelegates(by), etrun.WithLowering(etrun.LowerOff), etrun.WithPlan(etrun.PlanFile)}}, seed, compare)
		return err
	}
	for _, by := range []delegate.Backend{q.Calibrating(), q.Measuring()} {
		if err := run(lowered, by, sameKept); err != nil {
			return err
		}
	}
	layers, seen := q.Layers(), [][]float32(nil)
	forms := func(l int) lowering.SchemeName {
		if f := layers[l].Forms; len(f) > 0 && (seed>>(l%8))&1 == 0 {
			return f[0]
		}
		return ""
	}
	out, err := q.Write(forms)
	if err == nil {
		err = run(out.Data.Bytes(), go1, func(got, _ []float32) error { seen = append(seen, got); return nil })
	}
	if err != nil {
		return err
	}
	if faults := compiletest.Check(lowered, out.Data.Bytes()); len(faults) > 0 {
		return errors.New(faults[0])
	}
	return run(lowered, q.Trying(forms), func(got, _ []float32) error {
		want := seen[0]
		seen = seen[1:]
		return sameKept(got, want)
	})
}

func sameKept(got, want []float32) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}
