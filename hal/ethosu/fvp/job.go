package fvp

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// Pool is a memory of the model for jobs.
type Pool uint32

// Pools: on-chip and off-chip memory.
const (
	SRAM Pool = iota
	DDR
	numPools
)

// Range is a part of a pool.
type Range struct {
	Pool   Pool
	Offset uint32
	Bytes  uint32
}

// Read is bytes copied to the model's memory before a run.
type Read struct {
	To   Range // Bytes is len(From)
	From []byte
}

// Write is bytes copied from the model's memory after a run.
type Write struct {
	From Range // Bytes is len(To)
	To   []byte
}

// Job is one run of a command stream.
type Job struct {
	Config  isa.Config
	Stream  Range
	Regions [isa.NumRegions]Range // size 0 for unused ones
	Count   bool                  // count cycles and events
	Events  []uint32              // numbers of PMU events, at most 8
	Reads   []Read
	Writes  []Write
}

// Result contains the model's measurements.
type Result struct {
	Cycles uint64
	Events [maxEvents]uint64
}

// The job and reply files (firmware/job.h): 32-bit little-endian numbers.
const (
	jobMagic   = 0x314a5445 // "ETJ1"
	replyMagic = 0x31525445 // "ETR1"
	maxEvents  = 8
	replyBytes = 4 * (7 + maxEvents + 1)
)

// statusOK is the firmware's status of a successful run.
const statusOK = 0

// statuses are the meanings of the firmware's other status codes, with a numeric detail.
var statuses = map[uint32]struct {
	reason error
	text   string
}{
	1: {ErrFailed, "the firmware finds the job malformed (%#x)"},
	2: {ErrFailed, "the firmware could not read or write its files (%#x)"},
	3: {ErrUnsupported, "the model's NPU is of configuration %#x"},
	4: {ErrFailed, "the NPU stopped before the end of its stream, register STATUS %#x"},
	5: {ErrUnsupported, "the model counts %d PMU events"},
}

// encode writes job.bin.
func (j *Job) encode(w io.Writer, sequence uint32) error {
	b := words(nil, jobMagic, sequence, j.Config.Word, flag(j.Count))
	b = j.Stream.append(b)
	for i := range j.Regions {
		b = j.Regions[i].append(b)
	}
	b = words(b, uint32(len(j.Events)))
	var events [maxEvents]uint32
	copy(events[:], j.Events)
	b = words(b, events[:]...)
	b = words(b, uint32(len(j.Reads)), uint32(len(j.Writes)))
	for i := range j.Reads {
		r := &j.Reads[i]
		b = r.To.append(b)
		if _, err := w.Write(b); err != nil {
			return err
		}
		if _, err := w.Write(r.From); err != nil {
			return err
		}
		b = b[:0]
	}
	for i := range j.Writes {
		b = j.Writes[i].From.append(b)
	}
	_, err := w.Write(b)
	return err
}

func flag(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

func words(b []byte, list ...uint32) []byte {
	for _, w := range list {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func (r *Range) append(b []byte) []byte { return words(b, uint32(r.Pool), r.Offset, r.Bytes) }

// outputs returns the total size of all writes.
func (j *Job) outputs() int {
	n := 0
	for i := range j.Writes {
		n += len(j.Writes[i].To)
	}
	return n
}

// decode reads reply.bin and distributes the outputs.
func (j *Job) decode(b []byte, sequence uint32) (*Result, error) {
	if len(b) < replyBytes {
		return nil, fmt.Errorf("%d bytes, want at least %d", len(b), replyBytes)
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
	switch {
	case word(0) != replyMagic:
		return nil, fmt.Errorf("magic %#x, want %#x", word(0), uint32(replyMagic))
	case word(1) != sequence:
		return nil, fmt.Errorf("reply to job %d, want %d", word(1), sequence)
	case word(2) != statusOK:
		return nil, fmt.Errorf("status %d, but %d on the console", word(2), statusOK)
	case int64(word(7+maxEvents)) != int64(len(j.Writes)):
		return nil, fmt.Errorf("%d outputs, want %d", word(7+maxEvents), len(j.Writes))
	case len(b)-replyBytes != j.outputs():
		return nil, fmt.Errorf("%d bytes of outputs, want %d", len(b)-replyBytes, j.outputs())
	}
	r := &Result{Cycles: uint64(word(5)) | uint64(word(6))<<32}
	for i := range r.Events {
		r.Events[i] = uint64(word(7 + i))
	}
	rest := b[replyBytes:]
	for i := range j.Writes {
		rest = rest[copy(j.Writes[i].To, rest):]
	}
	return r, nil
}
