//go:build !linux

package cpu

// UseLargePages, UseSmallPages and Discard are advice that only Linux takes.
func UseLargePages([]byte) {}

// UseSmallPages does nothing here.
func UseSmallPages([]byte) {}

// Discard does nothing here: the bytes stay as they are.
func Discard([]byte) {}
