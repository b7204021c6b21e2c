//go:build !linux

package cpu

import "runtime"

// Allowed is the number of processors that the process may use.
func Allowed() int { return runtime.NumCPU() }
