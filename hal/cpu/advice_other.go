//go:build !linux

package cpu

// UseLargePages, UseSmallPages and Discard have an effect on Linux only.
func UseLargePages([]byte) {}

// UseSmallPages does nothing.
func UseSmallPages([]byte) {}

// Discard does nothing: the bytes are unchanged.
func Discard([]byte) {}
