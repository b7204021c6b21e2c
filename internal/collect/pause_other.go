//go:build !linux

package collect

import "time"

func pause(d time.Duration) { time.Sleep(d) }
