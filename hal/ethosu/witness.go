package ethosu

import (
	"encoding/binary"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// A witness is a command at the end of a stream that copies a number in a region. It
// is new for each run, so the copy proves that the run got to the end: the kernel
// wakes waiters in the same way when it gave the run up and reset the NPU.
const (
	witnessBytes = 16               // of the number, and its alignment
	witnessSpace = 2 * witnessBytes // the number and its copy
)

// withWitness replaces the end of a stream by a witness at offset at of a region.
func withWitness(f isa.Family, stream []byte, region uint16, at int64) ([]byte, error) {
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
	s = isa.AppendAddress(s, isa.DMA0Dst, uint64(at+witnessBytes))
	s = isa.AppendAddress(s, isa.DMA0Len, witnessBytes)
	s = isa.Append(s, isa.OpDMAStart, 0, 0)
	s = isa.Append(s, isa.OpDMAWait, 0, 0)
	return isa.Append(s, isa.OpStop, 0xffff, 0), nil
}

// armWitness writes the number of a run. The copy is made different in every byte
// that carries it.
func armWitness(space []byte, run uint64) {
	for i := 0; i < witnessBytes; i += 8 {
		binary.LittleEndian.PutUint64(space[i:], run)
		binary.LittleEndian.PutUint64(space[witnessBytes+i:], ^run)
	}
}

// testifies reports that the number was copied.
func testifies(space []byte) bool {
	return string(space[:witnessBytes]) == string(space[witnessBytes:witnessSpace])
}
