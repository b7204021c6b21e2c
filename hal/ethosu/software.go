package ethosu

import (
	"context"
	"errors"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

// softwareDriver is the software NPU: it is always available and runs every configuration.
var softwareDriver = &Driver{
	Name: "npu",
	Doc:  "software NPU, bit-exact, on the CPU",
	Auto: true,
	Probe: func() Outcome {
		return Outcome{State: Loaded, Reason: "U55, U65 and U85 in software", Paths: []string{""}}
	},
	Open: func(string) (Device, error) { return software{}, nil },
}

const softwareName = "npu"

type software struct{}

func (software) Info() Info { return Info{Driver: softwareName, Any: true} }

func (software) Close() error { return nil }

func (software) Load(p *Program) (Network, error) {
	n, err := p.Stream.Bind(&p.Regions)
	if err != nil {
		return nil, softwareError("load", err)
	}
	return &softwareNetwork{n, p}, nil
}

// softwareError wraps an error of the software NPU.
func softwareError(op string, err error) error {
	reason := ErrInterrupted
	var stream *isa.Error
	switch {
	case errors.Is(err, isa.ErrUnsupported):
		reason = ErrUnsupported
	case errors.As(err, &stream):
		reason = ErrProgram
	}
	return &DeviceError{Device: softwareName, Op: op, Reason: reason, Err: err}
}

type softwareNetwork struct {
	net     *npu.Network
	program *Program
}

func (*softwareNetwork) Close() error { return nil }

func (n *softwareNetwork) NewJob(o JobOptions) (Job, error) {
	j := &softwareJob{network: n, run: n.net.NewRun(o.Pool)}
	for i := range j.mem {
		r := &n.program.Regions[i]
		if r.Kind == isa.Constants {
			j.mem[i] = r.Data
		} else if r.Kind != isa.Unused {
			j.mem[i] = make([]byte, r.Size)
		}
	}
	return j, nil
}

type softwareJob struct {
	network *softwareNetwork
	run     *npu.Run
	mem     npu.Memory
	trace   npu.Trace
}

func (j *softwareJob) Region(i int) []byte {
	switch j.network.program.Regions[i].Kind {
	case isa.Scratch, isa.Inputs, isa.Outputs:
		return j.mem[i]
	}
	return nil
}

func (j *softwareJob) Observe(f npu.Trace) { j.trace = f }

func (j *softwareJob) Submit(ctx context.Context) (Result, error) {
	if err := j.run.Execute(ctx, &j.mem, j.trace); err != nil {
		return Result{}, softwareError("submit", err)
	}
	return Result{}, nil
}

func (j *softwareJob) Close() error {
	j.run, j.mem = nil, npu.Memory{}
	return nil
}
