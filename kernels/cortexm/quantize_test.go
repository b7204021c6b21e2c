package cortexm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

const (
	i8, i16, i32 = tensor.Int8, tensor.Int16, tensor.Int32
	u8, f32      = tensor.Uint8, tensor.Float32
)

// last is the dim order of channels-last images.
var last = []uint8{0, 2, 3, 1}

// of makes a contiguous tensor of type d.
func of(d tensor.DType, sizes []int, values ...float64) *tensor.Tensor {
	return kerneltest.FromDense(d, sizes, nil, values)
}

func vec(d tensor.DType, values ...float64) *tensor.Tensor {
	return of(d, []int{len(values)}, values...)
}

// gives is a case of an operator of this package that computes want.
func gives(name, op string, want *tensor.Tensor, args ...any) kerneltest.Case {
	return kerneltest.Case{Name: name, Op: "cortex_m::" + op + ".out", Args: args, Want: []any{want}}
}

// refuses is a case that ends with an error.
func refuses(name, op, refused string, out *tensor.Tensor, args ...any) kerneltest.Case {
	return kerneltest.Case{Name: name, Op: "cortex_m::" + op + ".out", Args: args, Outs: []any{out}, Refused: refused}
}

func TestQuantize(t *testing.T) {
	const op = "quantize_per_tensor"
	nan, inf := math.NaN(), math.Inf(1)
	kerneltest.Run(t, set,
		gives("half to even, then the zero point", op, vec(i8, 1, 3, 3, 1, -1), vec(f32, 0.5, 1.5, 2.5, -0.5, -1.5), 1.0, 1, -128, 127, i8),
		gives("bounds", op, vec(i8, 0, 0, 3, 9, 9), vec(f32, -1e9, -10, 0, 10, 1e9), 1.0, 3, 0, 9, i8),
		gives("no numbers", op, vec(i8, 0, 100, -100), vec(f32, nan, inf, -inf), 1.0, 3, -100, 100, i8),
		gives("16 bits", op, vec(i16, -32768, 7, 32767), vec(f32, -40000, 0.5, 40000), 1.0, 7, -32768, 32767, i16),
		gives("empty", op, tensor.New(i8, 0, 3), tensor.New(f32, 0, 3), 1.0, 0, -128, 127, i8),
		refuses("halves", op, "got float16, want float32", tensor.New(i8, 1), tensor.New(tensor.Float16, 1), 1.0, 0, -128, 127, i8),
		refuses("out of uint8", op, "got uint8, want int8 or int16", tensor.New(u8, 1), vec(f32, 1), 1.0, 0, 0, 127, u8),
		refuses("another type than the out's", op, "want the tensor's type, int8", tensor.New(i8, 1), vec(f32, 1), 1.0, 0, -128, 127, i16),
		refuses("zero point out of range", op, "argument 2: got 16777217", tensor.New(i8, 1), vec(f32, 1), 1.0, 1<<24+1, -128, 127, i8),
		refuses("bound out of range", op, "argument 4", tensor.New(i8, 1), vec(f32, 1), 1.0, 0, -128, 128, i8),
	)
}

// TestQuantizeReciprocal compares with the definition for scales whose reciprocal as a
// double is another float32.
func TestQuantizeReciprocal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x, want := make([]float64, 1000), make([]float64, 1000)
	scale := 0.0
	for scale == 0 || float32(1/scale) == 1/float32(scale) {
		scale = r.Float64()
	}
	for i := range x {
		x[i] = float64(float32(r.NormFloat64() * scale * 9000))
		q := math.RoundToEven(float64(float32(x[i]) * (1 / float32(scale))))
		want[i] = min(max(q-17, -32768), 32767)
	}
	kerneltest.Run(t, set,
		gives("reciprocal", "quantize_per_tensor", vec(i16, want...), vec(f32, x...), scale, -17, -32768, 32767, i16))
}

func TestDequantize(t *testing.T) {
	const op = "dequantize_per_tensor"
	kerneltest.Run(t, set,
		gives("int8", op, vec(f32, -63.5, 0.5, 64), vec(i8, -128, 0, 127), 0.5, -1, -128, 127, i8),
		gives("int16", op, vec(f32, float64(-65535*float32(0.1)), float64(-32764*float32(0.1))),
			vec(i16, -32768, 3), 0.1, 32767, -32768, 32767, i16),
		refuses("uint8", op, "got uint8", tensor.New(f32, 1), vec(u8, 1), 0.5, 0, 0, 255, u8),
		refuses("out of doubles", op, "want float32", tensor.New(tensor.Float64, 1), vec(i8, 1), 0.5, 0, -128, 127, i8),
		refuses("zero point out of range", op, "argument 2: got -16777217", tensor.New(f32, 1), vec(i8, 1), 0.5, -1<<24-1, -128, 127, i8),
	)
}
