package diff

import (
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// OnlySpecial reports whether floats differ, but only in elements of which one is NaN or an infinity.
func OnlySpecial(got, want *tensor.Value, tol kernels.Tolerance) bool {
	if got.Kind != tensor.KindTensor || want.Kind != tensor.KindTensor {
		return false
	}
	g, w := got.Tensor, want.Tensor
	load := tensor.Loader[float64](w.DType)
	if g.DType != w.DType || g.Numel() != w.Numel() || !w.DType.IsFloat() || load == nil {
		return false
	}
	special, size := false, w.DType.Size()
	a, b := g.Logical(), w.Logical()
	var x, y [1]float64
	for at := 0; at+size <= len(b); at += size {
		load(x[:], a[at:])
		load(y[:], b[at:])
		switch {
		case x == y || math.IsNaN(x[0]) && math.IsNaN(y[0]):
		case !finite(x[0]) || !finite(y[0]):
			special = true
		case !(math.Abs(x[0]-y[0]) <= tol.Abs+tol.Rel*math.Abs(y[0])):
			return false
		}
	}
	return special
}
