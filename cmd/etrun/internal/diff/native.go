package diff

import (
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack"
)

// SpecialNote explains outputs that differ only in NaN or infinities.
const SpecialNote = "note: an output differs only in NaN and infinities; the native engine (libXNNPACK) turns some of them into other numbers, " +
	"--xnnpack go computes them as PyTorch does"

// RunsNatively reports whether libXNNPACK runs one of a method's delegates.
func RunsNatively(list []delegate.Info) bool {
	return slices.ContainsFunc(list, func(i delegate.Info) bool { return i.Backend == xnnpack.ID && i.Engine == string(xnnpack.EngineNative) })
}
