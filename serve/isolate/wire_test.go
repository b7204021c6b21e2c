package isolate

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/sandbox"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
)

// samplesOf are messages of every kind, by direction.
var samplesOf = []struct {
	table table
	list  []message
}{
	{toWorker, []message{
		&attach{2, 4096, 8192},
		&run{ID: 1, Method: 2, Instance: 3, Lane: 1, Timeout: 5, Outputs: []int{0, 2}, Inputs: []value{
			{Kind: tensor.KindTensor, DType: tensor.Int8, Sizes: []int{2, 0, 3}, Offset: 64}, {Kind: tensor.KindInt, Int: math.MinInt64},
			{Kind: tensor.KindDouble, Double: -0.5}, {Kind: tensor.KindBool, Bool: true}, {Kind: tensor.KindString, Text: "é"}, {}}},
		&begin{1, 2, 3, 4}, &reset{1, 2}, &drop{3}, &cancel{4},
	}},
	{fromWorker, []message{
		&hello{Digest: "d", Layers: []sandbox.Layer{{Name: "a"}, {Name: "b", Err: errors.New("no")}}, Methods: []etrun.MethodMeta{
			{Name: "forward", Inputs: []etrun.ValueMeta{{Name: "x", Kind: tensor.KindTensor, DType: tensor.Float32, Sizes: []int{1, 8}, Dynamism: tensor.DynamicBound},
				{Kind: tensor.KindInt, Scalar: tensor.IntValue(7)}, {Kind: tensor.KindIntList, Scalar: tensor.Value{Kind: tensor.KindIntList}}}}, {Name: "other"}}},
		&hello{Fault: fault{2, "no program"}},
		&reply{ID: 9, Bytes: -1, Values: []value{{Kind: tensor.KindTensor, DType: tensor.Bool}}}, &reply{ID: 1, Fault: fault{1, "text"}},
		&event{Kind: trace.Stage, Name: "parse", Method: "m", Backend: "b", Reason: "io", Took: -1, Bytes: 1},
	}},
}

func TestMessages(t *testing.T) {
	for _, side := range samplesOf {
		seen := make(map[byte]bool)
		for _, m := range side.list {
			frame, err := side.table.frame(nil, m)
			if err != nil {
				t.Fatal(err)
			}
			seen[frame[4]] = true
			if got, err := side.table.parse(frame[4:]); err != nil || !reflect.DeepEqual(got, m) {
				t.Errorf("%+v came back as %+v, %v", m, got, err)
			}
			for n := 5; n < len(frame); n++ {
				if _, err := side.table.parse(frame[4:n]); !errors.Is(err, errProtocol) {
					t.Errorf("%T cut to %d of %d bytes: %v", m, n, len(frame), err)
				}
			}
			if _, err := side.table.parse(append(frame[4:], 0)); !errors.Is(err, errProtocol) {
				t.Errorf("%T with a byte more: %v", m, err)
			}
		}
		if len(seen) != len(side.table) {
			t.Errorf("%d kinds of %d", len(seen), len(side.table))
		}
	}
	if _, err := fromWorker.frame(nil, &reply{Values: []value{{Kind: tensor.KindString, Text: string(make([]byte, maxFrame))}}}); !errors.Is(err, errTooLong) {
		t.Errorf("a long text: %v", err)
	}
}

// FuzzMessages decodes arbitrary bytes as messages of both directions: decoding fails, or encoding
// the message returns the same bytes.
func FuzzMessages(f *testing.F) {
	for i, side := range samplesOf {
		for _, m := range side.list {
			frame, err := side.table.frame(nil, m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(i == 0, frame[4:])
		}
	}
	f.Fuzz(func(t *testing.T, to bool, b []byte) {
		side := fromWorker
		if to {
			side = toWorker
		}
		if len(b) == 0 || len(b) > maxFrame {
			return
		}
		m, err := side.parse(b)
		if err != nil {
			if !errors.Is(err, errProtocol) {
				t.Errorf("%v", err)
			}
			return
		}
		frame, err := side.frame(nil, m)
		if err != nil || !bytes.Equal(frame[4:], b) {
			t.Errorf("%x came back as %x, %v", b, frame, err)
		}
	})
}

// FuzzOutputs reads values with arbitrary offsets, types and sizes from shared memory.
func FuzzOutputs(f *testing.F) {
	f.Add(uint64(64), int8(6), 2, 3)
	f.Add(uint64(math.MaxUint64-63), int8(6), 1<<30, 1<<10)
	f.Fuzz(func(t *testing.T, at uint64, d int8, rows, columns int) {
		v := value{Kind: tensor.KindTensor, DType: tensor.DType(d), Sizes: []int{rows, columns}, Offset: at}
		if n, ok := tensor.Product(v.Sizes); !ok || n > maxElements || !v.DType.Valid() {
			return // not valid in a message
		}
		a := &area{bytes: tensor.AlignedBytes(4096)}
		x, err := a.get(&v)
		if err == nil && (len(x.Data) != x.NBytes() || len(x.Data) > 4096 || cap(x.Data) > 4096) {
			t.Errorf("%d bytes of %d", len(x.Data), x.NBytes())
		}
	})
}
