package trace

import (
	"io"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// DebugRecorder is a Recorder that also stores the values that instructions, nodes inside delegates
// and whole runs write, as the debug buffer that ExecuTorch's Inspector reads in addition to an
// ETDump. Its fields may be accessed while no events arrive.
type DebugRecorder struct {
	Recorder
	// Buffer contains the written tensors in logical order, each aligned to 64 bytes; bfloat16 is
	// stored as float32.
	Buffer []byte
	// MaxBytes limits the size of Buffer, 0 means no limit. DroppedValues counts values that exceed
	// it, and values of types that the Inspector does not support.
	MaxBytes      int64
	DroppedValues int
	// Paused stops storing values; events are still stored.
	Paused bool

	logged []loggedValue
}

// loggedValue is the content of a DebugEvent.
type loggedValue struct {
	run                       int64
	chain, instruction, index int
	name                      string
	scalar                    tensor.Value // for numbers
	dtype                     tensor.DType
	sizes                     []int
	offset                    int64 // offset of a tensor in the buffer, -1 if it has no elements
}

// bufferAlign is the alignment of tensors in the buffer.
const bufferAlign = 64

// inDebugBuffer are the types that the Inspector supports.
var inDebugBuffer = [tensor.NumDTypes]bool{tensor.Uint8: true, tensor.Int8: true, tensor.Int16: true, tensor.Int32: true,
	tensor.Int64: true, tensor.Float16: true, tensor.Float32: true, tensor.Float64: true, tensor.Bool: true, tensor.Uint16: true}

// Wants returns the Recorder's kinds and Written.
func (r *DebugRecorder) Wants() Kinds { return r.Recorder.Wants() | 1<<Written }

// Observe stores an event, or values.
func (r *DebugRecorder) Observe(e *Event) {
	if e.Kind != Written {
		r.Recorder.Observe(e)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range e.Values {
		if v := e.Values[i].Value; !r.Paused && e.Run != 0 {
			r.log(loggedValue{run: e.Run, chain: e.Chain, instruction: e.Instruction, index: e.Index, name: e.Name}, v)
		}
	}
}

func (r *DebugRecorder) log(l loggedValue, v *tensor.Value) {
	switch v.Kind {
	case tensor.KindInt, tensor.KindDouble, tensor.KindBool:
		l.scalar = *v
	case tensor.KindTensor:
		if !r.store(&l, v.Tensor) {
			r.DroppedValues++
			return
		}
	default:
		return
	}
	r.logged = append(r.logged, l)
}

// store copies a tensor's elements; it returns false if the tensor is dropped.
func (r *DebugRecorder) store(l *loggedValue, t *tensor.Tensor) bool {
	l.dtype, l.sizes, l.offset = t.DType, append([]int{}, t.Sizes...), -1
	if t.DType == tensor.BFloat16 {
		l.dtype = tensor.Float32
	}
	at := pack.Align(len(r.Buffer), bufferAlign)
	n := t.Numel() * l.dtype.Size()
	if !inDebugBuffer[l.dtype] || r.MaxBytes > 0 && int64(at+n) > r.MaxBytes {
		return false
	}
	if n == 0 {
		return true
	}
	r.Buffer = append(r.Buffer, make([]byte, at-len(r.Buffer)+n)...)
	l.offset = int64(at)
	if t.DType == l.dtype {
		copy(r.Buffer[at:], t.Logical())
		return true
	}
	numbers := make([]float32, t.Numel())
	tensor.Loader[float32](t.DType)(numbers, t.Logical())
	copy(r.Buffer[at:], tensor.BytesOf(numbers))
	return true
}

// WriteETDump writes the events as [Recorder.WriteETDump] does, with a DebugEvent for each value.
// Runs with values are distinguished by bundled_input_index, because the Inspector expects runs
// with the same index to have the same values.
func (r *DebugRecorder) WriteETDump(w io.Writer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	values := make(map[int64][]loggedValue)
	var order []int64
	for _, l := range r.logged {
		if values[l.run] == nil {
			order = append(order, l.run)
		}
		values[l.run] = append(values[l.run], l)
	}
	index := make(map[int64]int)
	for i, run := range order {
		if index[run] = i; len(order) == 1 {
			index[run] = -1
		}
	}
	return r.write(w, func(b *flatbuffers.Builder, run int64) (list []flatbuffers.UOffsetT, bundled int) {
		if values[run] == nil {
			return nil, -1
		}
		for i := range values[run] {
			list = append(list, values[run][i].event(b))
		}
		return list, index[run]
	})
}

// WriteValues writes Buffer.
func (r *DebugRecorder) WriteValues(w io.Writer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := w.Write(r.Buffer)
	return err
}

// event writes an Event table that contains a DebugEvent.
func (l *loggedValue) event(b *flatbuffers.Builder) flatbuffers.UOffsetT {
	entry := l.value(b)
	name := b.CreateSharedString(l.name)
	b.StartObject(6) // DebugEvent
	b.PrependUint64Slot(0, uint64(max(l.chain, 0)), 0)
	b.PrependInt32Slot(1, int32(l.instruction), -1)
	b.PrependUOffsetTSlot(2, entry, 0)
	b.PrependInt32Slot(3, int32(l.index), -1)
	b.PrependUOffsetTSlot(5, name, 0)
	debug := b.EndObject()
	b.StartObject(3) // Event
	b.PrependUOffsetTSlot(2, debug, 0)
	return b.EndObject()
}

// Value types of an ETDump (ValueType).
const (
	etInt    = 1
	etBool   = 2
	etDouble = 4
	etTensor = 5
)

// value writes a Value table. Outputs of a run are marked.
func (l *loggedValue) value(b *flatbuffers.Builder) flatbuffers.UOffsetT {
	kind, field, payload := l.payload(b)
	output := flatbuffers.UOffsetT(0)
	if l.chain < 0 {
		b.StartObject(1) // Bool
		b.PrependBoolSlot(0, true, false)
		output = b.EndObject()
	}
	b.StartObject(8) // Value
	b.PrependInt8Slot(0, kind, 0)
	b.PrependUOffsetTSlot(field, payload, 0)
	b.PrependUOffsetTSlot(7, output, 0)
	return b.EndObject()
}

// payload writes the content of a Value and returns the index of its field.
func (l *loggedValue) payload(b *flatbuffers.Builder) (kind int8, field int, at flatbuffers.UOffsetT) {
	switch l.scalar.Kind {
	case tensor.KindInt:
		b.StartObject(1)
		b.PrependInt64Slot(0, l.scalar.Int, 0)
		return etInt, 3, b.EndObject()
	case tensor.KindDouble:
		b.StartObject(1)
		b.PrependFloat64Slot(0, l.scalar.Double, 0)
		return etDouble, 5, b.EndObject()
	case tensor.KindBool:
		b.StartObject(1)
		b.PrependBoolSlot(0, l.scalar.Bool, false)
		return etBool, 6, b.EndObject()
	}
	sizes, strides := longs(b, l.sizes), longs(b, contiguous(l.sizes))
	b.StartObject(4) // Tensor
	b.PrependInt8Slot(0, int8(l.dtype), 0)
	b.PrependUOffsetTSlot(1, sizes, 0)
	b.PrependUOffsetTSlot(2, strides, 0)
	b.PrependInt64Slot(3, l.offset, 0)
	return etTensor, 1, b.EndObject()
}

func longs(b *flatbuffers.Builder, list []int) flatbuffers.UOffsetT {
	b.StartVector(8, len(list), 8)
	for i := len(list) - 1; i >= 0; i-- {
		b.PrependInt64(int64(list[i]))
	}
	return b.EndVector(len(list))
}

// contiguous returns the strides of sizes in logical order.
func contiguous(sizes []int) []int {
	strides, step := make([]int, len(sizes)), 1
	for i := len(sizes) - 1; i >= 0; i-- {
		strides[i] = step
		step *= max(sizes[i], 1)
	}
	return strides
}
