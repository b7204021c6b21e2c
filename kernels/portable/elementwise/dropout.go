package elementwise

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var dropoutOps = []kernels.Op{
	{Schema: "aten::native_dropout.out(Tensor input, float p, bool? train, *, Tensor(a!) out0, Tensor(b!) out1)", Func: nativeDropout,
		DTypes: floats, Family: kernels.Arith, Random: true, Note: "draws from the method's random source, not PyTorch's"},
}

// dropout multiplies by the mask and a scale.
var dropout = table{f32: scaleKept[float32], f64: scaleKept[float64]}

// nativeDropout keeps each element with probability 1-p, scaled by 1/(1-p), and stores in the mask which; with train
// false it keeps all.
func nativeDropout(c *kernels.Ctx, a kernels.Args) error {
	p, input, mask := a.Float(1), a.Tensor(0), a.Tensor(4)
	if !(p >= 0 && p <= 1) {
		return kernels.Badf(1, "a probability", "%v", p)
	}
	if err := kernels.WantDType(4, mask, tensor.Bool); err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, 4, input.Sizes); err != nil {
		return err
	}
	cl := call{in: [maxIn + 1]arg{tensorArg(a, 0), maskIn: tensorArg(a, 4)}, out: tensorArg(a, 3)}
	if err := cl.resolve(fractional, false); err != nil {
		return err
	}
	scale := 1.0
	if train := a.IsNone(2) || a.Bool(2); !train {
		p = 0
	} else if p < 1 {
		scale = 1 / (1 - p)
	}
	draw(c, mask.Data, p)
	cl.num[0] = kernels.Scalar{Type: tensor.Float64, F: scale}
	_, err := dropout.start(c, a, &cl) // the mask is drawn anew each time
	return err
}

// draw sets each byte with probability 1-p.
func draw(c *kernels.Ctx, mask []byte, p float64) {
	for i := range mask {
		mask[i] = 1
		if p > 0 {
			mask[i] = answer(c.Rand.Float64() >= p)
		}
	}
}

func scaleKept[C float](k *block[C]) {
	scale, mask := k.num[0], k.mask[:len(k.out)]
	a := k.a[:len(k.out)]
	for i := range k.out {
		v := a[i] * scale
		if mask[i] == 0 {
			v = 0
		}
		k.out[i] = v
	}
}
