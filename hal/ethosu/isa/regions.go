package isa

import "fmt"

// NumRegions is the number of memory regions that a command can refer to (BASEP0 to 7).
const NumRegions = 8

// RegionKind is the use of a region, by the compiler's convention.
type RegionKind uint8

// Kinds of regions.
const (
	Unused    RegionKind = iota
	Constants            // region 0: weights, biases, tables; never written
	Scratch              // region 1: the arena
	Fast                 // region 2: on-chip SRAM, undefined after a run
	Inputs               // region 3: inputs of streams with separate IO regions
	Outputs              // region 4: outputs of such streams
)

func (k RegionKind) String() string {
	names := [...]string{"unused", "constants", "scratch", "fast scratch", "inputs", "outputs"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Writable reports whether commands may write the region.
func (k RegionKind) Writable() bool { return k != Unused && k != Constants }

// Region is a memory region as declared by a program.
type Region struct {
	Kind RegionKind
	Size int64  // bytes
	Data []byte // contents of Constants, exactly Size bytes
}

// Regions are all regions of a program.
type Regions [NumRegions]Region
