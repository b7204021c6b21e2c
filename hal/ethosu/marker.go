package ethosu

import (
	"encoding/binary"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// A completion marker is a number that a command at the end of a stream copies within a region. The
// number is new for each run, so the copy proves that the run completed: the kernel also wakes
// waiters after it aborted a run and reset the NPU.
const (
	markerBytes = 16              // of the number, and its alignment
	markerSpace = 2 * markerBytes // the number and its copy
)

// withMarker appends the copy of the marker at offset at of a region to a stream.
func withMarker(f isa.Family, stream []byte, region uint16, at int64) ([]byte, error) {
	body, err := isa.BeforeStop(f, stream)
	if err != nil {
		return nil, err
	}
	s := append(make([]byte, 0, len(body)+64), body...)
	s = isa.Append(s, isa.OpKernelWait, 0, 0)
	s = isa.Append(s, isa.OpDMAWait, 0, 0)
	s = isa.Append(s, isa.DMA0SrcRegion, region, 0)
	s = isa.Append(s, isa.DMA0DstRegion, region, 0)
	s = isa.AppendAddress(s, isa.DMA0Src, uint64(at))
	s = isa.AppendAddress(s, isa.DMA0Dst, uint64(at+markerBytes))
	s = isa.AppendAddress(s, isa.DMA0Len, markerBytes)
	s = isa.Append(s, isa.OpDMAStart, 0, 0)
	s = isa.Append(s, isa.OpDMAWait, 0, 0)
	return isa.Append(s, isa.OpStop, 0xffff, 0), nil
}

// armMarker writes the number of a run, and another number to the location of the copy.
func armMarker(space []byte, run uint64) {
	for i := 0; i < markerBytes; i += 8 {
		binary.LittleEndian.PutUint64(space[i:], run)
		binary.LittleEndian.PutUint64(space[markerBytes+i:], ^run)
	}
}

// completed reports whether the number was copied.
func completed(space []byte) bool {
	return string(space[:markerBytes]) == string(space[markerBytes:markerSpace])
}
