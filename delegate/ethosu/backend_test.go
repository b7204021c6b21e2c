package ethosu

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestCompileFaults(t *testing.T) {
	v := ethosutest.Find(t, "u85-256/conv3x3/d0")
	good := v.Payload()
	specs, _ := args(t, good)
	tests := []struct {
		name    string
		payload delegate.Payload
		reason  error
		want    string
	}{
		{"an output too many", delegate.Payload{Data: good, Args: append(specs[:2:2], specs[1])}, delegate.ErrPayload, "1 inputs and 1 outputs, but the program's call has 3 arguments"},
		{"an output missing", delegate.Payload{Data: good, Args: specs[:1]}, delegate.ErrPayload, "call has 1 arguments"},
		{"float input", delegate.Payload{Data: good, Args: []*delegate.ArgSpec{arg(tensor.Float32, specs[0].Sizes...), specs[1]}}, delegate.ErrUnsupported, "input 0: got elements of float32"},
		{"stale output", delegate.Payload{Data: good, Index: 3, Args: []*delegate.ArgSpec{specs[0], arg(tensor.Float32, specs[1].Sizes...)}}, delegate.ErrPayload, "stale type of 1 outputs: delegate 3 output 0, sizes"},
		{"no such device", delegate.Payload{Data: good, Args: specs}, delegate.ErrMissing, "/dev/null"},
		{"arena too small", delegate.Payload{Data: join(with(parts(good), "scratch_size", put(0, 2000))), Args: specs}, delegate.ErrPayload, ""},
		{"scratch beyond the limit", delegate.Payload{Data: good, Args: specs, Limits: delegate.Limits{Scratch: 1000}}, delegate.ErrMemory, "bytes of working memory, more than the limit of 1000"},
		{"scratch of 4 GiB", delegate.Payload{Data: join(with(parts(good), "scratch_size", put(0, -16))), Args: specs, Limits: delegate.Limits{Scratch: 1 << 30}}, delegate.ErrMemory, " bytes of working memory, more than the limit of 1073741824"},
		{"driver payload", delegate.Payload{Data: join(with(parts(good), "cmd_data", func(p *part) { p.data[3] = '9' })), Args: specs}, delegate.ErrPayload, "COP9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := Backend{}
			if tt.name == "no such device" {
				b.Device = "/dev/null"
			}
			_, err := b.Compile(context.Background(), &tt.payload)
			var e *delegate.Error
			if !errors.As(err, &e) || !errors.Is(err, tt.reason) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %v: …%s…", err, tt.reason, tt.want)
			}
		})
	}
}

// TestStaleType sets the scale and zero point of an output that is declared float32.
func TestStaleType(t *testing.T) {
	v := ethosutest.Find(t, "u55-128/conv3x3/d0")
	specs, _ := args(t, v.Payload())
	specs[1] = arg(tensor.Float32, specs[1].Sizes...)
	want, wrong := delegate.Quantization{Scale: 0.25, ZeroPoint: -2}, delegate.Quantization{Scale: 9}
	list := []Quantization{{Delegate: 1, Quantization: wrong}, {Method: "other", Delegate: 2, Quantization: wrong}, {Method: "forward", Delegate: 2, Quantization: want}}
	for name, b := range map[string]Backend{"caller": {QParams: list}, "program": {}} {
		t.Run(name, func(t *testing.T) {
			p := &delegate.Payload{Method: "forward", Index: 2, Data: v.Payload(), Args: slices.Clone(specs)}
			if b.QParams == nil {
				out := *specs[1]
				out.Quants = []delegate.QuantUse{{Quantization: wrong, DType: tensor.Int16}, {Quantization: want, DType: tensor.Int8}}
				p.Args[1] = &out
			}
			checkStaleType(t, b, v, p)
		})
	}
}

func checkStaleType(t *testing.T, b Backend, v *ethosutest.Vector, p *delegate.Payload) {
	t.Helper()
	c, err := b.newCall(t, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.run(t, v)
	got := tensor.Data[float32](c.values[1].Tensor)
	for i, b := range v.Files["out0.bin"] {
		if want := float32(int32(int8(b))+2) * 0.25; got[i] != want {
			t.Fatalf("element %d: %v, want %v", i, got[i], want)
		}
	}
}

func TestExecuteFaults(t *testing.T) {
	v := ethosutest.Find(t, "u55-128/add/d0")
	specs, _ := args(t, v.Payload())
	c, err := newCall(t, &delegate.Payload{Data: v.Payload(), Args: specs}, nil)
	if err != nil {
		t.Fatal(err)
	}
	none, small := tensor.Value{}, tensor.TensorValue(tensor.New(tensor.Int8, 3))
	for name, values := range map[string][]*tensor.Value{
		"too few":       c.values[:2],
		"not a tensor":  {c.values[0], &none, c.values[2]},
		"another size":  {c.values[0], c.values[1], &small},
		"another size ": {&small, c.values[1], c.values[2]},
	} {
		if err := c.unit.Execute(context.Background(), values); !errors.Is(err, delegate.ErrArgument) {
			t.Errorf("%s: got %v, want %v", name, err, delegate.ErrArgument)
		}
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if err := c.unit.Execute(ctx, c.values); err != why {
		t.Errorf("cancelled: got %v, want %v", err, why)
	}
	c.run(t, v) // it still works
	c.check(t, v)
}

// TestNoAllocations runs with two threads, so that loops are shared out.
func TestNoAllocations(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	for _, name := range []string{"u55-128/mbv2_96/d0", "u85-256/mbv2_96/d0", "u85-256/bmm/d0", "u65-256/a16_softmax/d0", "u85-256/resize_bilinear_ac/d0"} {
		t.Run(name, func(t *testing.T) {
			v := ethosutest.Find(t, name)
			specs, _ := args(t, v.Payload())
			c, err := newCall(t, &delegate.Payload{Data: v.Payload(), Args: specs}, pool)
			if err != nil {
				t.Fatal(err)
			}
			c.run(t, v)
			n := testing.AllocsPerRun(3, func() {
				if err := c.unit.Execute(context.Background(), c.values); err != nil {
					t.Fatal(err)
				}
			})
			if n != 0 {
				t.Errorf("%v allocations a run, want 0", n)
			}
		})
	}
}

// TestTraceAndProfile follows the operations of a run.
func TestTraceAndProfile(t *testing.T) {
	v := ethosutest.Find(t, "u85-256/digits_cnn/d0")
	specs, _ := args(t, v.Payload())
	var names []string
	sum := uint32(0)
	trace := func(e *TraceEvent) {
		names = append(names, e.Operation.Name)
		sum = e.Operation.Checksum(e.Memory)
	}
	c, err := Backend{Trace: trace}.newCall(t, &delegate.Payload{Data: v.Payload(), Args: specs}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.unit.(delegate.Profiler).SetProfiling(true); err != nil {
		t.Fatal(err)
	}
	c.run(t, v)
	c.check(t, v)
	want := "NPU_OP_CONV NPU_OP_POOL NPU_OP_CONV NPU_OP_POOL NPU_OP_CONV"
	if got := strings.Join(names, " "); got != want || sum == 0 {
		t.Errorf("traced %s with checksum %#x, want %s", got, sum, want)
	}
	times := c.unit.(delegate.Profiler).Profile(nil)
	if len(times) != 5 || times[0].Name != "NPU_OP_CONV" || times[0].Duration <= 0 {
		t.Errorf("profile %v, want 5 operations with durations", times)
	}
}

func TestInfo(t *testing.T) {
	v := ethosutest.Find(t, "u85-256/split2__directdrive/d0")
	specs, _ := args(t, v.Payload())
	im, err := Backend{}.Compile(context.Background(), &delegate.Payload{Data: v.Payload(), Args: specs})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, im.Close)
	info := im.Info()
	facts := map[string]string{}
	for _, f := range info.Facts {
		facts[f[0]] = f[1]
	}
	for key, want := range map[string]string{"compiled for": "ethos-u85-256", "command stream": "70 words (COP2)",
		"operations": "2 POOL SUM", "region 3": "inputs, 240 bytes"} {
		if facts[key] != want {
			t.Errorf("%s: %q, want %q", key, facts[key], want)
		}
	}
	if info.Engine != "software NPU" || info.Inputs != 1 || len(info.Nodes) != 2 {
		t.Errorf("engine %q, %d inputs, %d nodes; want the software NPU, 1 and 2", info.Engine, info.Inputs, len(info.Nodes))
	}
}

func TestJobOptions(t *testing.T) {
	o := jobOptions([]delegate.CompileSpec{
		{Key: "ethosu.timeout_ns", Value: binary.LittleEndian.AppendUint64(nil, 5e8)},
		{Key: "ethosu.enable_cycle_counter", Value: []byte{1}},
		{Key: "ethosu.pmu_event0", Value: []byte{17, 0, 0, 0}},
		{Key: "ethosu.pmu_event1", Value: []byte{1}}, // not a number of 32 bits
		{Key: "tosa_spec", Value: []byte("TOSA-1.0+INT")},
	})
	if o.Timeout.Milliseconds() != 500 || !o.Cycles || len(o.Events) != 1 || o.Events[0] != 17 {
		t.Errorf("got %+v, want 500 ms, cycles and event 17", o)
	}
}

// FuzzPayload compiles and runs any payload with the arguments that it asks for.
func FuzzPayload(f *testing.F) {
	for _, archive := range []string{"u55-128", "u85-256"} {
		for _, v := range ethosutest.Vectors(f, archive) {
			if len(v.Payload()) < 4000 {
				f.Add(v.Payload())
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		err := compileAndRun(b)
		var e *delegate.Error
		if err != nil && !errors.As(err, &e) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want a *delegate.Error", err)
		}
		if !bytes.Equal(b, before) {
			t.Error("the payload changed")
		}
	})
}

// TestUnitsAtOnce runs units of one image from several goroutines.
func TestUnitsAtOnce(t *testing.T) {
	v := ethosutest.Find(t, "u85-256/digits_cnn/d0")
	specs, _ := args(t, v.Payload())
	pool := cpu.NewPool(2)
	defer pool.Close()
	im, err := Backend{}.Compile(context.Background(), &delegate.Payload{Data: v.Payload(), Args: specs})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, im.Close)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			u, err := im.Unit(delegate.Instance{Pool: pool})
			if err != nil {
				t.Error(err)
				return
			}
			defer closeAll(t, u.Close)
			in, out := tensor.New(specs[0].DType, specs[0].Sizes...), tensor.New(specs[1].DType, specs[1].Sizes...)
			copy(in.Data, v.Files["in0.bin"])
			a, b := tensor.TensorValue(in), tensor.TensorValue(out)
			for range 20 {
				clear(out.Data)
				if err := u.Execute(context.Background(), []*tensor.Value{&a, &b}); err != nil {
					t.Error(err)
				}
				if want := v.Files["out0.bin"]; !bytes.Equal(out.Data, want) {
					t.Errorf("got %v, want %v", out.Data, want)
				}
			}
		})
	}
	wg.Wait()
}
