package serve

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve/oip"
)

// slot is an input or output of a method in the protocol. Numbers, bools and strings are tensors of
// one element there.
type slot struct {
	name     string
	datatype oip.Datatype
	meta     etrun.ValueMeta
}

// scalars are the datatypes of kinds other than tensors. An input without a value in the program is
// usually a symbolic size.
var scalars = map[tensor.Kind]oip.Datatype{
	tensor.KindInt: "INT64", tensor.KindDouble: "FP64", tensor.KindBool: "BOOL", tensor.KindString: oip.Bytes, tensor.None: "INT64",
}

// slotsOf describes inputs or outputs. Unnamed ones are named by prefix and index.
func slotsOf(list []etrun.ValueMeta, prefix string) ([]slot, error) {
	slots := make([]slot, len(list))
	for i, meta := range list {
		s := slot{name: meta.Name, meta: meta}
		taken := slices.ContainsFunc(slots[:i], func(other slot) bool { return other.name == s.name })
		if s.name == "" || taken {
			s.name = fmt.Sprintf("%s_%d", prefix, i)
		}
		ok := false
		if meta.Kind == tensor.KindTensor {
			s.datatype, ok = oip.DatatypeOf(meta.DType)
		} else {
			s.datatype, ok = scalars[meta.Kind]
		}
		if !ok {
			return nil, fmt.Errorf("%s: %s has no datatype in the protocol", s.name, describe(meta))
		}
		slots[i] = s
	}
	return slots, nil
}

func describe(meta etrun.ValueMeta) string {
	if meta.Kind == tensor.KindTensor {
		return meta.DType.String()
	}
	return meta.Kind.String()
}

// optional reports whether an input has a default value.
func (s *slot) optional() bool { return s.meta.Kind != tensor.KindTensor }

// shape returns the shape for the protocol's metadata: -1 for sizes that vary.
func (s *slot) shape() []int {
	if s.meta.Kind != tensor.KindTensor {
		return []int{1}
	}
	shape := slices.Clone(s.meta.Sizes)
	for i := range shape {
		if s.meta.Dynamism != tensor.Static {
			shape[i] = -1
		}
	}
	if shape == nil {
		shape = []int{}
	}
	return shape
}

// accepts reports whether the input accepts a shape.
func (s *slot) accepts(shape []int) bool {
	if s.meta.Kind != tensor.KindTensor {
		return len(shape) == 0 || slices.Equal(shape, []int{1})
	}
	if len(shape) != len(s.meta.Sizes) {
		return false
	}
	for i, n := range shape {
		bound := s.meta.Sizes[i]
		if s.meta.Dynamism == tensor.Static && n != bound || s.meta.Dynamism == tensor.DynamicBound && n > bound {
			return false
		}
	}
	return true
}

// want describes what the input accepts.
func (s *slot) want() string {
	sizes := []int{1}
	bound := ""
	if s.meta.Kind == tensor.KindTensor {
		sizes = s.meta.Sizes
		bound = map[tensor.Dynamism]string{tensor.DynamicBound: " at most", tensor.DynamicUnbound: " or another shape"}[s.meta.Dynamism]
	}
	return fmt.Sprintf("%s %v%s", s.datatype, sizes, bound)
}

// value converts a tensor of a request to an argument of the method, without copying its bytes.
func (s *slot) value(t *oip.Tensor) (v tensor.Value, err error) {
	free := s.meta.Kind == tensor.None && isScalar(t.Datatype)
	if t.Datatype != s.datatype && !free || !s.accepts(t.Shape) {
		note := ""
		if t.Datatype == oip.Bytes && s.datatype != oip.Bytes {
			note = "; it takes no strings"
		}
		return v, requestError("input %q: %s %v, want %s%s", t.Name, t.Datatype, t.Shape, s.want(), note)
	}
	if s.meta.Kind != tensor.KindTensor {
		return scalarOf(t), nil
	}
	x := tensor.Make(s.meta.DType, t.Shape, nil, tensor.Static)
	x.Bind(t.Data)
	return tensor.TensorValue(x), nil
}

// shapeOf returns the shape of an input that has a number of bytes. Its sizes are fixed, but for one.
func (s *slot) shapeOf(size int64) ([]int, error) {
	d, ok := s.datatype.DType()
	if !ok {
		return []int{1}, nil
	}
	shape, each := s.shape(), int64(d.Size())
	free := -1
	for i, n := range shape {
		switch {
		case n >= 0:
			each = mul(each, int64(n))
		case free >= 0:
			return nil, requestError("the shape of input %q does not follow from the size of the body: its sizes %v vary", s.name, shape)
		default:
			free = i
		}
	}
	if free >= 0 && each > 0 && size%each == 0 && size/each <= math.MaxInt32 {
		shape[free] = int(size / each)
		return shape, nil
	}
	if free >= 0 || size != each {
		return nil, requestError("body of %d bytes, input %q wants %s", size, s.name, s.want())
	}
	return shape, nil
}

// mul returns the product of sizes, or the largest integer.
func mul(a, b int64) int64 {
	if high, low := bits.Mul64(uint64(a), uint64(b)); high == 0 && low <= math.MaxInt64 {
		return int64(low)
	}
	return math.MaxInt64
}

func isScalar(d oip.Datatype) bool {
	return slices.Contains([]oip.Datatype{"INT64", "FP64", "BOOL", oip.Bytes}, d)
}

// scalarOf returns the element of a tensor of a scalar's datatype.
func scalarOf(t *oip.Tensor) tensor.Value {
	switch t.Datatype {
	case "INT64":
		return tensor.IntValue(tensor.View[int64](t.Data)[0])
	case "FP64":
		return tensor.DoubleValue(tensor.View[float64](t.Data)[0])
	case "BOOL":
		return tensor.BoolValue(t.Data[0] != 0)
	}
	return tensor.StringValue(string(t.Texts[0]))
}

// fill copies an output to a tensor of an answer, into memory from alloc.
func (s *slot) fill(t *oip.Tensor, v *tensor.Value, alloc func(n int) []byte) {
	t.Name, t.Datatype, t.Shape = s.name, s.datatype, []int{1}
	switch v.Kind {
	case tensor.KindTensor:
		t.Shape = slices.Clone(v.Tensor.Sizes)
		to := tensor.Make(v.Tensor.DType, t.Shape, nil, tensor.Static)
		t.Data = alloc(v.Tensor.NBytes())
		to.Bind(t.Data)
		tensor.CopyLayout(to, v.Tensor)
	case tensor.KindInt:
		t.Data = tensor.BytesOf([]int64{v.Int})
	case tensor.KindDouble:
		t.Data = tensor.BytesOf([]float64{v.Double})
	case tensor.KindBool:
		t.Data = tensor.BytesOf([]bool{v.Bool})
	case tensor.KindString:
		t.Texts = [][]byte{[]byte(v.Str)}
	default: // None
		t.Shape, t.Data = []int{0}, []byte{}
	}
}

// find returns the index of the slot with this name, or -1.
func find(slots []slot, name string) int {
	return slices.IndexFunc(slots, func(s slot) bool { return s.name == name })
}

// namesOf lists the slots for messages.
func namesOf(slots []slot) string {
	if len(slots) == 0 {
		return "none"
	}
	var b strings.Builder
	for i := range slots {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", slots[i].name)
	}
	return b.String()
}
