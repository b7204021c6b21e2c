// Package ethosu (no compatibility promise) runs compiled networks on Arm Ethos-U NPUs
// through one interface: hardware behind a Linux driver, Arm's model of it, or the
// software NPU.
//
// A carrier is a [Driver]; the readable list of them is in drivers.go. [Open] picks
// one and gives a [Device]. A [Program] is loaded onto it once and gives a [Network];
// each user of the network has a [Job] with memory of its own:
//
//	dev, err := ethosu.Open("auto", program.Config)
//	net, err := dev.Load(program)
//	job, err := net.NewJob(ethosu.JobOptions{})
//	copy(job.Region(1)[in.Offset:], input)
//	res, err := job.Submit(ctx)
//	copy(output, job.Region(1)[out.Offset:])
package ethosu

import (
	"context"
	"time"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

// Device is one NPU. It is safe for concurrent use; a device that runs one job at a
// time queues the others ([Queue]).
type Device interface {
	// Info says what the device is. It never changes.
	Info() Info
	// Load checks a program against the device and puts on it what all jobs share:
	// the command stream and the constants. p is kept and must not change until the
	// network is closed. A program that the device cannot run is a *DeviceError with
	// reason ErrUnsupported, one that breaks the format's rules with ErrProgram.
	Load(p *Program) (Network, error)
	// Close frees the device. All its networks have been closed before.
	Close() error
}

// Network is a program loaded onto a device. It is safe for concurrent use.
type Network interface {
	// NewJob allocates the memory of one user of the network.
	NewJob(o JobOptions) (Job, error)
	// Close frees the network. All its jobs have been closed before.
	Close() error
}

// Job is a network with memory of its own. It is used by one goroutine at a time.
type Job interface {
	// Region is the memory of one of the program's regions that the caller writes
	// inputs to and reads outputs from: Scratch, Inputs and Outputs. It has the
	// region's size, lives until Close, and keeps its place; nil for other regions.
	// Between submits only the caller touches it.
	Region(i int) []byte
	// Submit runs the network once, from the inputs' bytes to the outputs' bytes. It
	// waits for the device until ctx ends or the job's Timeout has passed, then stops
	// the work; after an error the regions' contents are unspecified. It allocates
	// nothing in the steady state. Errors are *DeviceError; one caused by the end of
	// ctx is context.Cause(ctx) too, a Timeout is ErrTimeout.
	Submit(ctx context.Context) (Result, error)
	// Close frees the job's memory.
	Close() error
}

// Observable is implemented by jobs whose device stops after each operation.
type Observable interface {
	// Observe has f called after each operation of later Submits, with the regions'
	// bytes as they are then; nil ends it. An error of f ends the run with it.
	Observe(f npu.Trace)
}

// JobOptions are a job's settings; the zero value is ready.
type JobOptions struct {
	Pool    *cpu.Pool     // threads of carriers that compute on the CPU, nil for one
	Timeout time.Duration // of one Submit on a device, without the time in its queue; 0 is the carrier's own; not for work on the CPU
	Cycles  bool          // count cycles where the device can
	Events  []uint32      // PMU events to count, by the numbers of the device's family
}

// Result is what a device measured during a run.
type Result struct {
	Cycles uint64   // NPU cycles, 0 where they were not asked for or the device counts none
	Events []uint64 // counts of JobOptions.Events, nil like Cycles; valid until the next Submit
}

// Info describes a device.
type Info struct {
	Driver   string     // name of its driver's row
	Path     string     // device node, executable or "" for the software NPU
	Config   isa.Config // what it is; ignored if Any
	Any      bool       // it takes every configuration: the software NPU
	SRAM     int64      // bytes of fast memory that it has for region 2, 0 if the caller's memory serves
	Hardware bool       // real hardware, neither a model nor software
}

// Program is a compiled network with all that some carrier needs of it. Who makes one
// has checked the stream against the regions ([npu.Program.Check]), so a carrier need
// only check that it fits the device.
type Program struct {
	Config    isa.Config   // what it was compiled for
	Commands  []byte       // the command stream, after the driver payload's header
	Stream    *npu.Program // the same, read
	Payload   []byte       // the driver payload (COP1, COP2) that holds Commands
	Container []byte       // the whole vela_bin_stream, for carriers that run programs
	Regions   isa.Regions
	Inputs    []Binding
	Outputs   []Binding
}

// Binding is where a region holds an input or output of the network.
type Binding struct {
	Region   int
	Offset   int
	Shape    [6]int // left padded with 1
	ElemSize int    // bytes
}

// Bytes is the size of the tensor.
func (b *Binding) Bytes() int {
	n := b.ElemSize
	for _, s := range b.Shape {
		n *= s
	}
	return n
}
