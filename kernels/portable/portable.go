// Package portable (no compatibility promise) is the list of ATen operators that are
// computed in plain Go, on every machine.
package portable

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/conv"
	"github.com/etrun-go/etrun/kernels/portable/custom"
	"github.com/etrun-go/etrun/kernels/portable/elementwise"
	"github.com/etrun-go/etrun/kernels/portable/factory"
	"github.com/etrun-go/etrun/kernels/portable/fft"
	"github.com/etrun-go/etrun/kernels/portable/index"
	"github.com/etrun-go/etrun/kernels/portable/matmul"
	"github.com/etrun-go/etrun/kernels/portable/move"
	"github.com/etrun-go/etrun/kernels/portable/norm"
	"github.com/etrun-go/etrun/kernels/portable/pool"
	"github.com/etrun-go/etrun/kernels/portable/prim"
	"github.com/etrun-go/etrun/kernels/portable/reduce"
	"github.com/etrun-go/etrun/kernels/portable/resample"
)

// Ops lists the operators of all families.
func Ops() []kernels.Op {
	return kernels.Pure(slices.Concat(
		move.Ops(),
		index.Ops(),
		elementwise.Ops(),
		prim.Ops(),
		factory.Ops(),
		fft.Ops(),
		matmul.Ops(),
		conv.Ops(),
		custom.Ops(),
		pool.Ops(),
		norm.Ops(),
		reduce.Ops(),
		resample.Ops(),
	))
}
