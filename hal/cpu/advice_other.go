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
