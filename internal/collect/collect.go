// Package collect sets when Go's garbage is collected in the programs of this module.
package collect

import (
	"os"
	"runtime/debug"
)

// loading is the growth of the heap, in percent, before a collection while a program is opened, or runs once. Its heap is small, as
// files, weights and values are elsewhere, and most of it is needed: collections would find little.
const loading = 300

// Rarely has fewer collections until Usually, unless the environment sets GOGC.
func Rarely() { percent(loading) }

// Usually ends that. It collects what loads have left, and returns the memory to the system.
func Usually() {
	percent(100)
	debug.FreeOSMemory()
}

func percent(n int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(n)
	}
}
