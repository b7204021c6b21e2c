//go:build !linux

package cputime

import "time"

var begun = time.Now()

// Process is the time since the process began.
func Process() time.Duration { return time.Since(begun) }

// Thread is the time since the process began.
func Thread() time.Duration { return time.Since(begun) }
