package etrun

import (
	"math"

	"github.com/etrun-go/etrun/runtime/pte"
)

// Limits bound the resources of a program. Zero fields mean the defaults, which are far above the
// needs of most models of edge devices. A larger [WithMaxMemory] replaces the defaults in bytes.
type Limits struct {
	Format       FormatLimits
	FileBytes    int64 // size of each file, default 8 GiB
	PlannedBytes int64 // arenas, state and delegate scratch of one method, default 1 GiB
	Instructions int64 // executed by one Execute, default 10,000,000 (ExecuTorch's)
}

// FormatLimits bound the sizes declared inside a file.
type FormatLimits struct {
	Tables       int   // FlatBuffers tables, default 2 Mi
	Values       int   // values per method, default 512 Ki
	Instructions int   // instructions per method, default 512 Ki
	ArenaBytes   int64 // sum of a method's planned buffers, default 8 GiB
}

// format converts the limits to those of package pte.
func (l *Limits) format() pte.Limits { return pte.Limits(l.Format) }

// maxBytes is the largest slice; where int has 32 bits it is below the default limits.
const maxBytes = math.MaxInt

func (l Limits) withDefaults(maxMemory int64) Limits {
	for _, limit := range []struct {
		bytes *int64
		def   int64
	}{{&l.FileBytes, 8 << 30}, {&l.PlannedBytes, 1 << 30}, {&l.Format.ArenaBytes, 8 << 30}} {
		if *limit.bytes == 0 {
			*limit.bytes = max(limit.def, maxMemory)
		}
	}
	if l.Instructions == 0 {
		l.Instructions = 10_000_000
	}
	l.FileBytes, l.PlannedBytes = min(l.FileBytes, maxBytes), min(l.PlannedBytes, maxBytes)
	return l
}
