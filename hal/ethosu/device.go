// Package ethosu (no compatibility promise) runs compiled networks on Arm Ethos-U NPUs through one
// interface: hardware behind a Linux driver, Arm's simulation models, or the software NPU.
//
// drivers.go lists the drivers, each a [Driver]. [Load] selects one, and returns a [Device] and
// the [Program] that was loaded onto it, a [Network]. Each user of the network has a [Job] with its
// own memory:
//
//	dev, net, err := ethosu.Load("auto", program)
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

// Device is an NPU. It is safe for concurrent use; a device that runs one job at a time queues the
// others ([Queue]).
type Device interface {
	// Info describes the device. It never changes.
	Info() Info
	// Load checks a program against the device and loads the parts that all jobs share: the command
	// stream and the constants. p must not change until the network is closed. If the device cannot
	// run the program, the error is a *DeviceError with reason ErrUnsupported; if the program
	// violates the format, the reason is ErrProgram.
	Load(p *Program) (Network, error)
	// Close frees the device. All its networks must be closed.
	Close() error
}

// Network is a program loaded onto a device. It is safe for concurrent use.
type Network interface {
	// NewJob allocates the memory of one user of the network.
	NewJob(o JobOptions) (Job, error)
	// Close frees the network. All its jobs must be closed.
	Close() error
}

// Job is a network with its own memory. It is used by one goroutine at a time.
type Job interface {
	// Region returns the memory of a region for inputs and outputs: Scratch, Inputs or Outputs, nil
	// for other regions. It has the region's size and stays at the same address until Close.
	// Between calls of Submit only the caller accesses it.
	Region(i int) []byte
	// Submit runs the network once. It waits for the device until ctx ends or the job's Timeout
	// expires, then stops the run; after an error the contents of the regions are undefined. It
	// does not allocate in the steady state. Errors are *DeviceError; they wrap context.Cause(ctx)
	// if ctx ended, and match ErrTimeout after a timeout.
	Submit(ctx context.Context) (Result, error)
	// Close frees the job's memory.
	Close() error
}

// Observable is implemented by jobs whose device stops after each operation.
type Observable interface {
	// Observe makes later Submits call f after each operation with the current contents of the
	// regions; nil ends this. An error of f ends the run.
	Observe(f npu.Trace)
}

// JobOptions are a job's settings. The zero value is ready to use.
type JobOptions struct {
	Pool    *cpu.Pool     // threads of drivers that compute on the CPU, nil for one
	Timeout time.Duration // limit of one Submit, without the wait in the device's queue; 0 means the driver's default; ignored by drivers that compute on the CPU
	Cycles  bool          // count cycles if the device supports it
	Events  []uint32      // PMU events to count, as numbered for the device's family
}

// Result contains a device's measurements of a run.
type Result struct {
	Cycles uint64   // NPU cycles, 0 if not requested or not supported
	Events []uint64 // counts of JobOptions.Events, nil if not requested or not supported; valid until the next Submit
}

// Info describes a device.
type Info struct {
	Driver   string     // name of its driver
	Path     string     // device node, executable or "" for the software NPU
	Config   isa.Config // its configuration; ignored if Any
	Any      bool       // runs every configuration, as the software NPU does
	SRAM     int64      // size of its fast memory for region 2, 0 if it uses the caller's memory
	Hardware bool       // hardware, neither a model nor software
}

// Program is a compiled network in the forms that the drivers need. Its creator must have checked
// the stream against the regions ([npu.Program.Check]), so that drivers only check that it fits the
// device.
type Program struct {
	Config    isa.Config   // configuration it was compiled for
	Commands  []byte       // the command stream, after the driver payload's header
	Stream    *npu.Program // the command stream, decoded
	Payload   []byte       // the driver payload (COP1, COP2) that contains Commands
	Container []byte       // the whole vela_bin_stream, for drivers that run whole programs
	Regions   isa.Regions
	Inputs    []Binding
	Outputs   []Binding
}

// Binding is the location of an input or output of the network in a region.
type Binding struct {
	Region   int
	Offset   int
	Shape    [6]int // left padded with 1
	ElemSize int    // bytes
}

// Bytes returns the size of the tensor.
func (b *Binding) Bytes() int {
	n := b.ElemSize
	for _, s := range b.Shape {
		n *= s
	}
	return n
}
