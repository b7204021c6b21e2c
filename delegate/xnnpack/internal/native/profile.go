package native

import (
	"slices"
	"strings"
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// SetProfiling implements delegate.Profiler. The library measures only a runtime that was created
// for profiling. The unit has that one in addition to the other if both are in use. A switch
// between them costs as much as a call with other arguments.
func (u *Unit) SetProfiling(on bool) error {
	if on == u.profiling || u.closed {
		return nil
	}
	old := u.now
	u.profiling = on
	u.choose()
	matches := u.bound && !u.UseOther || slices.Equal(u.shapes, u.Image.Shapes)
	if matches && u.now.Runtime == 0 { // otherwise the next call does
		if err := u.create(); err != nil && !u.Image.runsInGo(err) { // else the next call tries again
			u.now, u.profiling = old, !on
			return err
		}
	}
	if !old.used {
		u.drop(old)
	}
	if u.other != nil {
		return u.other.SetProfiling(on)
	}
	return nil
}

// Profile implements delegate.Profiler with the measurements of the library, which are in
// microseconds.
func (u *Unit) Profile(dst []delegate.NodeTime) []delegate.NodeTime {
	if u.UseOther || u.ranInGo {
		return u.other.Profile(dst)
	}
	r := u.now
	if !u.profiling || !u.bound || r.Runtime == 0 || r.names == nil && !u.readNames() {
		return dst
	}
	if len(u.times) != len(r.names) {
		u.times = make([]uint64, len(r.names))
	}
	times := tensor.BytesOf(u.times)
	if u.lib.GetRuntimeProfilingInfo(r.Runtime, xnn.ProfileOperatorTiming, uint(len(times)), &times[0], &u.need) != xnn.Success {
		return dst
	}
	for i, name := range r.names {
		dst = append(dst, delegate.NodeTime{Name: name, Duration: time.Duration(u.times[i]) * time.Microsecond})
	}
	return dst
}

// readNames reads the operator names of the profiled runtime. It reports whether that succeeded.
func (u *Unit) readNames() bool {
	var need uint
	var none byte
	u.lib.GetRuntimeProfilingInfo(u.now.Runtime, xnn.ProfileOperatorName, 0, &none, &need)
	if need == 0 || need > 1<<20 {
		return false
	}
	text := make([]byte, need)
	if u.lib.GetRuntimeProfilingInfo(u.now.Runtime, xnn.ProfileOperatorName, need, &text[0], &need) != xnn.Success {
		return false
	}
	u.now.names = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	return true
}
