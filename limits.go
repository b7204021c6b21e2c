package etrun

import (
	"math"

	"github.com/etrun-go/etrun/runtime/pte"
)

// Limits bound what a program may cost. Zero fields mean the defaults, which every
// model that an edge device can hold stays far below.
type Limits struct {
	Format       FormatLimits
	FileBytes    int64 // size of a file, default 8 GiB
	PlannedBytes int64 // arenas, state and delegates' scratch of one method, default 1 GiB
	Instructions int64 // executed in one Execute, default 10,000,000 (ExecuTorch's)
}

// FormatLimits bound what a file describes.
type FormatLimits struct {
	Tables       int   // FlatBuffers tables, default 2 Mi
	Values       int   // values of a method, default 512 Ki
	Instructions int   // instructions of a method, default 512 Ki
	ArenaBytes   int64 // planned buffers of a method together, default 8 GiB
}

// format is the limits as the reader of the formats has them.
func (l *Limits) format() pte.Limits { return pte.Limits(l.Format) }

// mostBytes is the largest slice; where int has 32 bits it is below the default limits.
const mostBytes = math.MaxInt

func (l Limits) withDefaults() Limits {
	if l.FileBytes == 0 {
		l.FileBytes = 8 << 30
	}
	if l.PlannedBytes == 0 {
		l.PlannedBytes = 1 << 30
	}
	if l.Instructions == 0 {
		l.Instructions = 10_000_000
	}
	l.FileBytes, l.PlannedBytes = min(l.FileBytes, mostBytes), min(l.PlannedBytes, mostBytes)
	return l
}
