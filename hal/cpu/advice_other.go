//go:build !linux

package cpu

// UseLargePages, UseSmallPages, Populate, Touch and Discard have an effect on Linux only.
func UseLargePages([]byte) {}

// UseSmallPages does nothing.
func UseSmallPages([]byte) {}

// Populate does nothing.
func Populate([]byte) {}

// Touch does nothing.
func Touch([]byte) {}

// Discard does nothing: the bytes are unchanged.
func Discard([]byte) {}

// Move changes nothing and returns false: Linux can.
func Move(_, _ []byte) bool { return false }

// Zero clears b.
func Zero(b []byte) { clear(b) }

// Resident returns the size of b: what is in memory is not known.
func Resident(b []byte) int64 { return int64(len(b)) }

// MapDense is [MapMemory].
func MapDense(size int64) (*Mapping, error) { return MapMemory(size) }
