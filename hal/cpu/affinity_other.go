//go:build !linux

package cpu

import "runtime"

// Allowed returns the number of processors available to the process.
func Allowed() int { return runtime.NumCPU() }
