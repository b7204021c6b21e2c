package serve_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
	"github.com/etrun-go/etrun/serve"
)

// passing returns a program of testdata with its input 0 as one more output: the output shows whose memory
// the input has.
func passing(t *testing.T, path string) *etrun.Program {
	t.Helper()
	file, err := os.ReadFile("../testdata/" + path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pte.Parse(file, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m := &p.Methods[0]
	m.Outputs = append(m.Outputs, m.Inputs[0])
	prog, err := etrun.Parse(ptetest.Write(p, ptetest.Layout{}), etrun.WithThreads(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := prog.Close(); err != nil {
			t.Error(err)
		}
	})
	return prog
}

// noise returns a tensor of random elements.
func noise(r *rand.Rand, sizes ...int) *tensor.Tensor {
	t := tensor.New(tensor.Float32, sizes...)
	for i := range tensor.Data[float32](t) {
		tensor.Data[float32](t)[i] = r.Float32() - 0.5
	}
	return t
}

// unaligned returns the same tensor in memory that is not aligned.
func unaligned(x *tensor.Tensor) *tensor.Tensor {
	y := tensor.Make(x.DType, x.Sizes, x.DimOrder, tensor.Static)
	y.Bind(tensor.AlignedBytes(len(x.Data) + 2)[2:])
	copy(y.Data, x.Data)
	return y
}

// lastChannels returns the same tensor [N, C, H, W] in channels-last order.
func lastChannels(x *tensor.Tensor) *tensor.Tensor {
	y := tensor.Make(x.DType, x.Sizes, []uint8{0, 2, 3, 1}, tensor.Static)
	y.Bind(tensor.AlignedBytes(y.NBytes()))
	from, to := tensor.Data[float32](x), tensor.Data[float32](y)
	channels, points := x.Sizes[1], x.Sizes[2]*x.Sizes[3]
	for i := range from {
		n, c, at := i/points/channels, i/points%channels, i%points
		to[(n*points+at)*channels+c] = from[i]
	}
	return y
}

// copied returns the outputs of a method on copies of inputs.
func copied(t *testing.T, m *etrun.Method, inputs []*tensor.Tensor) (outputs [][]byte) {
	t.Helper()
	for i, x := range inputs {
		if err := m.SetInput(i, x); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range m.NumOutputs() {
		v, err := m.Output(i)
		if err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, bytes.Clone(v.Tensor.Data))
	}
	return outputs
}

// TestLocalBinds runs requests on the memory of their tensors. The outputs equal those of copies; tensors
// that cannot be bound are copied.
func TestLocalBinds(t *testing.T) {
	same := func(x *tensor.Tensor) *tensor.Tensor { return x }
	type request struct {
		sizes []int // of each input
		form  func(*tensor.Tensor) *tensor.Tensor
		bound bool
	}
	for _, c := range []struct {
		file     string
		requests []request
	}{
		{"pte/dynamic_pair.pte", []request{
			{[]int{5, 3}, same, true}, {[]int{2, 3}, same, true}, {[]int{4, 3}, unaligned, false},
			{[]int{1, 3}, same, true}, {[]int{5, 3}, unaligned, false}}},
		{"pte/elided_view.pte", []request{
			{[]int{2, 3, 4, 5}, same, true}, {[]int{2, 3, 4, 5}, lastChannels, false},
			{[]int{2, 3, 4, 5}, unaligned, false}, {[]int{2, 3, 4, 5}, same, true}}},
	} {
		prog := passing(t, c.file)
		own, err := prog.Load(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close()
		for name, runner := range runners(t, prog) {
			r := rand.New(rand.NewPCG(1, 2))
			var last, before []byte // of the request before: the memory of its input 0, and a copy
			for k, q := range c.requests {
				var inputs []*tensor.Tensor
				var values []tensor.Value
				for range own.Meta().Inputs {
					x := noise(r, q.sizes...)
					inputs, values = append(inputs, x), append(values, tensor.TensorValue(q.form(x)))
				}
				want := copied(t, own, inputs)
				checkRun(t, runner, values, want, q.bound)
				if !bytes.Equal(last, before) {
					t.Error("it changed the memory of the request before")
				}
				last = inputs[0].Data
				before = bytes.Clone(last)
				if t.Failed() {
					t.Fatalf("%s, %s, request %d", c.file, name, k)
				}
			}
		}
	}
}

// runners returns a pool of one instance, an instance, and one that is reset before each run.
func runners(t *testing.T, p *etrun.Program) map[string]serve.Runner {
	t.Helper()
	local := serve.Local(p, nil)
	list := map[string]serve.Runner{}
	pool, err := local.Pool(t.Context(), "forward", 1)
	if err != nil {
		t.Fatal(err)
	}
	list["pool"] = pool
	for _, name := range []string{"instance", "reset"} {
		in, err := local.Instance(t.Context(), "forward", nil)
		if err != nil {
			t.Fatal(err)
		}
		if list[name] = in; name == "reset" {
			list[name] = resetting{in}
		}
	}
	t.Cleanup(func() {
		for _, r := range list {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return list
}

// resetting is an instance that is reset before each run.
type resetting struct{ serve.Instance }

func (r resetting) Run(ctx context.Context, inputs []tensor.Value, outputs []int, take func(k int, v *tensor.Value)) error {
	if err := r.Reset(); err != nil {
		return err
	}
	return r.Instance.Run(ctx, inputs, outputs, take)
}

// checkRun runs a request. The last output is input 0: it must be in the memory of the request if that is bound.
func checkRun(t *testing.T, r serve.Runner, inputs []tensor.Value, want [][]byte, bound bool) {
	t.Helper()
	outputs := make([]int, len(want))
	for i := range outputs {
		outputs[i] = i
	}
	taken := 0
	err := r.Run(t.Context(), inputs, outputs, func(k int, v *tensor.Value) {
		taken++
		if !bytes.Equal(v.Tensor.Data, want[k]) {
			t.Errorf("output %d: got %v, want %v", k, v.Tensor.Data, want[k])
		}
		if own := &v.Tensor.Data[0] == &inputs[0].Tensor.Data[0]; k == len(want)-1 && own != bound {
			t.Errorf("the input is in the memory of the request: %v, want %v", own, bound)
		}
	})
	if err != nil || taken != len(want) {
		t.Errorf("%d outputs of %d, %v", taken, len(want), err)
	}
}
