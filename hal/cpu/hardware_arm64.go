//go:build linux

package cpu

import (
	"sync"

	"golang.org/x/sys/unix"
)

// Bits of the kernel's list of the processor's extensions.
const (
	auxHWCAP = 16
	capsHalf = 1<<9 | 1<<10 // scalars and vectors of half precision
)

// ReadHardware returns the processor's extensions that kernels are selected by.
var ReadHardware = sync.OnceValue(func() (h Hardware) {
	list, err := unix.Auxv()
	if err != nil {
		return h
	}
	for _, pair := range list {
		if pair[0] == auxHWCAP {
			h.NEONFP16 = pair[1]&capsHalf == capsHalf
		}
	}
	return h
})
