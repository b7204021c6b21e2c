package xnnpack

import (
	"strings"
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// SetProfiling implements delegate.Profiler. The library measures a runtime that was
// made for it, so this makes another.
func (u *native) SetProfiling(on bool) error {
	flags := u.flags &^ xnn.FlagBasicProfiling
	if on {
		flags |= xnn.FlagBasicProfiling
	}
	if flags == u.flags {
		return nil
	}
	u.flags, u.names, u.bound = flags, nil, false
	return u.create()
}

// Profile implements delegate.Profiler with the library's own measurement, whose unit
// is the microsecond.
func (u *native) Profile(dst []delegate.NodeTime) []delegate.NodeTime {
	if u.flags&xnn.FlagBasicProfiling == 0 || !u.bound || u.runtime == 0 {
		return dst
	}
	if u.names == nil && !u.readNames() {
		return dst
	}
	if len(u.times) != len(u.names) {
		u.times = make([]uint64, len(u.names))
	}
	var need uint
	times := tensor.BytesOf(u.times)
	if u.lib.GetRuntimeProfilingInfo(u.runtime, xnn.ProfileOperatorTiming, uint(len(times)), &times[0], &need) != xnn.Success {
		return dst
	}
	for i, name := range u.names {
		dst = append(dst, delegate.NodeTime{Name: name, Duration: time.Duration(u.times[i]) * time.Microsecond})
	}
	return dst
}

// readNames asks for the names of the runtime's operators.
func (u *native) readNames() bool {
	var need uint
	var none byte
	u.lib.GetRuntimeProfilingInfo(u.runtime, xnn.ProfileOperatorName, 0, &none, &need)
	if need == 0 || need > 1<<20 {
		return false
	}
	text := make([]byte, need)
	if u.lib.GetRuntimeProfilingInfo(u.runtime, xnn.ProfileOperatorName, need, &text[0], &need) != xnn.Success {
		return false
	}
	u.names = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	return true
}
