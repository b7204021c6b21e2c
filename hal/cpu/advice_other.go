//go:build !linux

package cpu

// UseLargePages and Discard are advice that only Linux takes.
func UseLargePages([]byte) {}

// Discard does nothing here: the bytes stay as they are.
func Discard([]byte) {}
