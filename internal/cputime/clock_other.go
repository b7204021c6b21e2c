//go:build !linux

package cputime

import "time"

var begun = time.Now()

// Process returns the time since the process started.
func Process() time.Duration { return time.Since(begun) }

// Thread returns the time since the process started.
func Thread() time.Duration { return time.Since(begun) }
