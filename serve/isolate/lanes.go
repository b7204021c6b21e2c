package isolate

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Shared memory is divided into lanes, one for each concurrent call.
const (
	laneAlign   = 4 << 10
	dataAlign   = 64
	dataPadding = 64      // after a tensor: kernels may read slightly beyond it
	maxLane     = 4 << 30 // bytes of the inputs, or of the outputs, of a call
	maxLanes    = 1 << 10
)

// laneOf returns the largest size of the inputs and of the outputs of any method.
func laneOf(methods []etrun.MethodMeta, unbounded uint64) (in, out uint64, err error) {
	for i := range methods {
		in = max(in, bytesOf(methods[i].Inputs, unbounded))
		out = max(out, bytesOf(methods[i].Outputs, unbounded))
	}
	if in > maxLane || out > maxLane {
		return 0, 0, fmt.Errorf("inputs of %d bytes and outputs of %d, want at most %d: %w", in, out, uint64(maxLane), etrun.ErrMemory)
	}
	return pack.Align(max(in, 1), laneAlign), pack.Align(max(out, 1), laneAlign), nil
}

func bytesOf(list []etrun.ValueMeta, unbounded uint64) (n uint64) {
	for i := range list {
		if list[i].Kind != tensor.KindTensor {
			continue
		}
		count, _ := tensor.Product(list[i].Sizes) // cannot overflow: messages are checked
		n += pack.Align(uint64(count)*uint64(list[i].DType.Size()), dataAlign) + dataPadding
		if list[i].Dynamism == tensor.DynamicUnbound {
			n = max(n, unbounded)
		}
		n = min(n, math.MaxInt64)
	}
	return n
}

// area is the inputs or the outputs of a lane.
type area struct {
	bytes []byte
	used  uint64
}

// put copies a tensor after the previous ones, in logical order, and returns its offset.
func (a *area) put(t *tensor.Tensor) (at uint64, err error) {
	x := tensor.Make(t.DType, t.Sizes, nil, tensor.Static)
	at = pack.Align(a.used, dataAlign)
	end := at + uint64(x.NBytes())
	if end+dataPadding > uint64(len(a.bytes)) {
		return 0, fmt.Errorf("tensors of %d bytes, isolated models take at most %d: %w", end, len(a.bytes), etrun.ErrMemory)
	}
	x.Bind(a.bytes[at:end:end])
	tensor.CopyLayout(x, t)
	a.used = end + dataPadding
	return at, nil
}

// get returns the tensor of a value, in place.
func (a *area) get(v *value) (*tensor.Tensor, error) {
	x := tensor.Make(v.DType, v.Sizes, nil, tensor.Static)
	n, size := uint64(x.NBytes()), uint64(len(a.bytes))
	if v.Offset%dataAlign != 0 || n > size || v.Offset > size-n {
		return nil, fmt.Errorf("%w: %d bytes at %d of %d", errProtocol, n, v.Offset, size)
	}
	x.Bind(a.bytes[v.Offset : v.Offset+n : v.Offset+n])
	return x, nil
}

// values converts a message's values to arguments or results.
func (a *area) values(list []value) ([]tensor.Value, error) {
	values := make([]tensor.Value, len(list))
	for i := range list {
		if list[i].Kind != tensor.KindTensor {
			values[i] = list[i].scalar()
			continue
		}
		t, err := a.get(&list[i])
		if err != nil {
			return nil, err
		}
		values[i] = tensor.TensorValue(t)
	}
	return values, nil
}

// putAll copies values to an area.
func putAll(a *area, values []tensor.Value) (list []value, err error) {
	list = make([]value, len(values))
	for i := range values {
		list[i] = valueOf(&values[i])
		if list[i].Kind == tensor.KindTensor {
			if list[i].Offset, err = a.put(values[i].Tensor); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// fits reports whether an output matches the method's declaration.
func fits(v *value, meta *etrun.ValueMeta) bool {
	if v.Kind != tensor.KindTensor || meta.Kind != tensor.KindTensor {
		return v.Kind != tensor.KindTensor && meta.Kind != tensor.KindTensor
	}
	if v.DType != meta.DType || len(v.Sizes) != len(meta.Sizes) {
		return false
	}
	for i, n := range v.Sizes {
		most := meta.Sizes[i]
		if meta.Dynamism == tensor.Static && n != most || meta.Dynamism == tensor.DynamicBound && n > most {
			return false
		}
	}
	return true
}
