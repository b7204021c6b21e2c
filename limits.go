package etrun

import "github.com/etrun-go/etrun/runtime/pte"

// Limits bound what a program may cost. Zero fields mean the defaults, which every
// model that an edge device can hold stays far below.
type Limits struct {
	Format       pte.Limits // tables, values and instructions of the file
	FileBytes    int64      // size of a file, default 8 GiB
	PlannedBytes int64      // arenas, state and delegates' scratch of one method, default 1 GiB
	Instructions int64      // executed in one Execute, default 10,000,000 (ExecuTorch's)
}

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
	return l
}
