package isa

import (
	"fmt"
	"strings"
)

// Family is a generation of the NPU. The values are those of the product field of the configuration
// word.
type Family uint8

// Families.
const (
	U55 Family = 0
	U65 Family = 1
	U85 Family = 2
)

func (f Family) String() string {
	if int(f) < len(families) {
		return families[f].name
	}
	return fmt.Sprintf("product %d", uint8(f))
}

// families contains each family's name and its range of MACs per cycle, as powers of two.
var families = [...]struct {
	name             string
	minMACs, maxMACs uint32
}{
	U55: {"Ethos-U55", 5, 8},
	U65: {"Ethos-U65", 8, 9},
	U85: {"Ethos-U85", 7, 11},
}

// Config is the configuration of an NPU, or what a command stream was compiled for
// (register CONFIG, and the driver payload's optimizer configuration).
type Config struct {
	Family  Family
	MACs    int    // per cycle: 32 to 2048
	Version int    // of the command stream
	SHRAM   int    // KiB of internal memory, U55 and U65 only
	Word    uint32 // the configuration word itself
	Arch    uint32 // the architecture ID (register ID), 0 if unknown
}

// ParseConfig decodes a configuration word and an architecture ID.
func ParseConfig(word, arch uint32) (Config, error) {
	c := Config{Family: Family(word >> 28), Version: int(word >> 4 & 15), Word: word, Arch: arch}
	if int(c.Family) >= len(families) {
		return c, Unsupported("configuration word %#x: %v", word, c.Family)
	}
	f, log2 := families[c.Family], word&15
	if log2 < f.minMACs || log2 > f.maxMACs {
		return c, Unsupported("configuration word %#x: %v: got 2^%d MACs, want 2^%d to 2^%d", word, c.Family, log2, f.minMACs, f.maxMACs)
	}
	c.MACs = 1 << log2
	if c.Family != U85 {
		c.SHRAM = int(word >> 8 & 255)
	}
	return c, nil
}

// Runs returns an error if a stream compiled for want does not run on an NPU of configuration c.
// Like the driver, it requires the same product, number of MACs and command stream version.
func (c Config) Runs(want Config) error {
	switch {
	case c.Family != want.Family || c.MACs != want.MACs:
		return Unsupported("the program is for %v, the device is %v", want, c)
	case c.Version != want.Version:
		return Unsupported("command stream version %d, the device supports %d", want.Version, c.Version)
	}
	return nil
}

// String returns the name that compilers use: "ethos-u55-128".
func (c Config) String() string {
	return fmt.Sprintf("%s-%d", strings.ToLower(c.Family.String()), c.MACs)
}

// Cores returns the number of weight streams and MAC engines of an operation.
func (c Config) Cores() int {
	switch {
	case c.Family == U65 && c.MACs == 512, c.Family == U85 && c.MACs == 512:
		return 2
	case c.Family == U85 && c.MACs > 512:
		return 4
	}
	return 1
}
