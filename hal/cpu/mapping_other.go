//go:build !linux

package cpu

func useLargePages([]byte) {}
