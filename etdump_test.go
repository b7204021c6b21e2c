package etrun_test

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/flatbuf"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
)

// debugEvent is a DebugEvent of an ETDump as ExecuTorch's Inspector reads it.
type debugEvent struct {
	bundled            int32
	chain              uint64
	instruction, index int32
	name               string
	output             bool
	value              tensor.Value
}

// readETDump reads the debug events of an ETDump by the ids of etdump_schema_flatcc.fbs, and
// tensors as the Inspector does: elements in logical order at an offset of the buffer.
func readETDump(t *testing.T, file, buffer []byte) (list []debugEvent) {
	t.Helper()
	if n := binary.LittleEndian.Uint32(file); int(n) != len(file)-4 || string(file[8:12]) != "ED00" {
		t.Fatalf("size prefix %d of %d bytes, identifier %q", n, len(file), file[8:12])
	}
	r := flatbuf.New(file[4:], 0, 0)
	flatbuf.Each(r.Root(), 1, "run_data", func(run flatbuf.Table) {
		bundled := run.Int32(1, "bundled_input_index", -1)
		flatbuf.Each(run, 3, "events", func(e flatbuf.Table) {
			if !e.Has(2) {
				if !e.Has(0) {
					t.Error("an event that is neither profile nor debug event")
				}
				return
			}
			d := e.Table(2, "debug_event")
			list = append(list, debugEvent{bundled, d.Uint64(0, "chain_index", 0), d.Int32(1, "instruction_id", -1),
				d.Int32(3, "delegate_debug_id_int", -1), d.String(5, "name"), false, tensor.Value{}})
			last := &list[len(list)-1]
			v := d.Table(2, "debug_entry")
			if v.Has(7) {
				last.output = v.Table(7, "output").Bool(0, "bool_val", false)
			}
			last.value = readETValue(t, v, buffer)
		})
	})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func readETValue(t *testing.T, v flatbuf.Table, buffer []byte) tensor.Value {
	t.Helper()
	switch kind := v.Int8(0, "val", 0); kind {
	case 1:
		return tensor.IntValue(v.Table(3, "int_value").Int64(0, "int_val", 0))
	case 2:
		return tensor.BoolValue(v.Table(6, "bool_value").Bool(0, "bool_val", false))
	case 4:
		return tensor.DoubleValue(v.Table(5, "double_value").Float64(0, "double_val", 0))
	case 5:
		x := v.Table(1, "tensor")
		sizes := flatbuf.Slice(x.Vector(1, "sizes", 8), flatbuf.Vector.Int64)
		strides := flatbuf.Slice(x.Vector(2, "strides", 8), flatbuf.Vector.Int64)
		out := tensor.New(tensor.DType(x.Int8(0, "scalar_type", 0)), ints(sizes)...)
		at := x.Int64(3, "offset", 0)
		if n := int64(out.NBytes()); n == 0 != (at < 0) || n > 0 && (at%64 != 0 || at+n > int64(len(buffer))) || len(strides) != len(sizes) {
			t.Fatalf("tensor %v at %d of %d bytes, strides %v", out, at, len(buffer), strides)
		}
		for i, s := range out.Strides {
			if out.NBytes() > 0 && int64(s) != strides[i] {
				t.Errorf("%v: strides %v", out, strides)
			}
		}
		if at >= 0 {
			copy(out.Data, buffer[at:])
		}
		return tensor.TensorValue(out)
	default:
		t.Fatalf("value of kind %d", kind)
	}
	return tensor.Value{}
}

func ints(list []int64) []int {
	out := make([]int, len(list))
	for i, x := range list {
		out[i] = int(x)
	}
	return out
}

// TestETDumpValues checks that an ETDump and its debug buffer contain the values that an observer
// of the same runs receives.
func TestETDumpValues(t *testing.T) {
	for _, path := range append(observed, "testdata/ethosu/programs/digits.pte", "testdata/pte/conv_portable.pte") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			r, o := &trace.DebugRecorder{}, &viewer{}
			m := load(t, path, etrun.WithDelegates(all.Backends()...), etrun.WithDelegates(xnnpack.Backend{Values: true}),
				etrun.WithObserver(r), etrun.WithObserver(o))
			setOnes(t, m)
			for range 2 {
				if err := m.Execute(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			r.Paused = true
			if err := m.Execute(t.Context()); err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := r.WriteETDump(&b); err != nil {
				t.Fatal(err)
			}
			compareETDump(t, readETDump(t, b.Bytes(), r.Buffer), o.seen)
		})
	}
}

func compareETDump(t *testing.T, got []debugEvent, shown []recordedValues) {
	t.Helper()
	var runs []int64
	at := 0
	for _, e := range shown {
		if e.Kind != trace.Written || e.Run == 0 {
			continue
		}
		if len(runs) == 0 || runs[len(runs)-1] != e.Run {
			runs = append(runs, e.Run)
		}
		for _, v := range e.values {
			if len(runs) > 2 || v.Kind == tensor.KindString { // paused
				continue
			}
			if at == len(got) {
				t.Fatalf("%d debug events, want more", len(got))
			}
			d := got[at]
			at++
			if d.name != e.Name || d.output != (e.Chain < 0) || int(d.instruction) != e.Instruction || int(d.index) != e.Index || int(d.bundled) != len(runs)-1 {
				t.Fatalf("event %d: %+v, want %+v", at, d, e.Event)
			}
			if err := compare.Values(&d.value, &v, kernels.Tolerance{}); err != nil {
				t.Errorf("event %d, %s: %v", at, e.Name, err)
			}
		}
	}
	if at != len(got) || at == 0 {
		t.Errorf("%d debug events, want %d", len(got), at)
	}
}

// TestDebugBufferLimit counts values that exceed the limit.
func TestDebugBufferLimit(t *testing.T) {
	r := &trace.DebugRecorder{MaxBytes: 100}
	m := load(t, "testdata/digits/portable.pte", etrun.WithObserver(r))
	setOnes(t, m)
	if err := m.Execute(t.Context()); err != nil || len(r.Buffer) > 100 || r.DroppedValues == 0 {
		t.Errorf("%d bytes, %d values dropped, %v", len(r.Buffer), r.DroppedValues, err)
	}
}
