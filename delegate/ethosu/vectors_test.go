package ethosu

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// args describes a payload's arguments as integers of the element size in its records.
func args(t testing.TB, b []byte) (specs []*delegate.ArgSpec, inputs int) {
	t.Helper()
	c, err := parse(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return argsOf(c), len(c.inputs)
}

func argsOf(c *container) (specs []*delegate.ArgSpec) {
	for _, r := range append(c.inputs[:len(c.inputs):len(c.inputs)], c.outputs...) {
		specs = append(specs, &delegate.ArgSpec{DType: written(r.elemSize), Sizes: r.shape[:]})
	}
	return specs
}

// call is a compiled payload with the tensors of a call.
type call struct {
	unit   delegate.Unit
	values []*tensor.Value
	inputs int
}

func newCall(t testing.TB, p *delegate.Payload, pool *cpu.Pool) (*call, error) {
	t.Helper()
	return Backend{}.newCall(t, p, pool)
}

func (b Backend) newCall(t testing.TB, p *delegate.Payload, pool *cpu.Pool) (*call, error) {
	t.Helper()
	im, err := b.Compile(context.Background(), p)
	if err != nil {
		return nil, err
	}
	u, err := im.Unit(delegate.Instance{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(t, u.Close, im.Close) })
	c := &call{unit: u, inputs: im.Info().Inputs}
	for _, a := range p.Args {
		v := tensor.TensorValue(tensor.New(a.DType, a.Sizes...))
		c.values = append(c.values, &v)
	}
	return c, nil
}

func closeAll(t testing.TB, closers ...func() error) {
	for _, f := range closers {
		if err := f(); err != nil {
			t.Error(err)
		}
	}
}

// run executes the call with a test vector's inputs.
func (c *call) run(t testing.TB, v *ethosutest.Vector) {
	t.Helper()
	for i := range c.inputs {
		if n := copy(c.values[i].Tensor.Data, v.Files[fmt.Sprintf("in%d.bin", i)]); n != c.values[i].Tensor.NBytes() {
			t.Fatalf("input %d: %d bytes of %d", i, n, c.values[i].Tensor.NBytes())
		}
	}
	if err := c.unit.Execute(context.Background(), c.values); err != nil {
		t.Fatal(err)
	}
}

// check compares the outputs with the expected bytes.
func (c *call) check(t testing.TB, v *ethosutest.Vector) {
	t.Helper()
	for i, out := range c.values[c.inputs:] {
		want, got := v.Files[fmt.Sprintf("out%d.bin", i)], out.Tensor.Data
		if len(want) != len(got) {
			t.Errorf("output %d: %d bytes, want %d", i, len(got), len(want))
			continue
		}
		if bytes.Equal(want, got) {
			continue
		}
		first, bad := -1, 0
		for j := range want {
			if want[j] != got[j] {
				if bad++; first < 0 {
					first = j
				}
			}
		}
		t.Errorf("output %d: %d of %d bytes differ, first at %d: got %d, want %d", i, bad, len(want), first, int8(got[first]), int8(want[first]))
	}
}

// compileAndRun compiles arbitrary bytes and runs them with arguments that match the payload's
// records.
func compileAndRun(b []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c, err := parse(b, nil)
	if err != nil {
		return err
	}
	specs := argsOf(c)
	im, err := Backend{}.Compile(ctx, &delegate.Payload{Data: b, Args: specs})
	if err != nil {
		return err
	}
	defer im.Close()
	u, err := im.Unit(delegate.Instance{})
	if err != nil {
		return err
	}
	defer u.Close()
	var values []*tensor.Value
	for _, a := range specs {
		v := tensor.TensorValue(tensor.New(a.DType, a.Sizes...))
		values = append(values, &v)
	}
	return u.Execute(ctx, values)
}

// TestVectors runs every payload of the test archives twice: results must be exact.
func TestVectors(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	for _, v := range ethosutest.Vectors(t, "*") {
		t.Run(v.Name, func(t *testing.T) {
			specs, _ := args(t, v.Payload())
			c, err := newCall(t, &delegate.Payload{Data: v.Payload(), Args: specs}, pool)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				c.run(t, v)
				c.check(t, v)
				for _, out := range c.values[c.inputs:] {
					clear(out.Tensor.Data)
				}
			}
		})
	}
}

func BenchmarkExecute(b *testing.B) {
	for _, name := range []string{"u55-128/mbv2_96/d0", "u85-256/mbv2_96/d0", "u55-128/conv3x3/d0", "u55-128/attn_b4/d0"} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%d", name, threads), func(b *testing.B) {
				v, pool := ethosutest.Find(b, name), cpu.NewPool(threads)
				defer pool.Close()
				specs, _ := args(b, v.Payload())
				c, err := newCall(b, &delegate.Payload{Data: v.Payload(), Args: specs}, pool)
				if err != nil {
					b.Fatal(err)
				}
				c.run(b, v)
				b.ReportAllocs()
				for b.Loop() {
					c.run(b, v)
				}
			})
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, name := range []string{"u55-128/mbv2_96/d0", "u85-256/mbv2_96/d0"} {
		b.Run(name, func(b *testing.B) {
			v := ethosutest.Find(b, name)
			specs, _ := args(b, v.Payload())
			for b.Loop() {
				im, err := Backend{}.Compile(context.Background(), &delegate.Payload{Data: v.Payload(), Args: specs})
				if err != nil {
					b.Fatal(err)
				}
				closeAll(b, im.Close)
			}
		})
	}
}
