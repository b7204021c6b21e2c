//go:build !linux

package kerneltest

import "time"

var begun = time.Now()

func threadTime() time.Duration { return time.Since(begun) }
