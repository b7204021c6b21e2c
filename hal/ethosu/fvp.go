package ethosu

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/etrun-go/etrun/hal/ethosu/fvp"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/internal/pack"
)

// FVPPrefix is the prefix of a device name that selects Arm's model at the following path: an
// executable, or a folder with the models.
const FVPPrefix = "fvp:"

// fvpDriver is for Arm's models of Corstone-300 and Corstone-320, with our own firmware.
var fvpDriver = &Driver{
	Name:   "fvp",
	Doc:    "Arm's Fixed Virtual Platforms (Corstone-300, Corstone-320)",
	Probe:  probeFVP,
	Open:   openFVP,
	Claims: func(path string) bool { return strings.HasPrefix(path, FVPPrefix) },
}

var fvpFamilies = []isa.Family{isa.U55, isa.U65, isa.U85}

func probeFVP() Outcome {
	var found []string
	for _, f := range fvpFamilies {
		if path, err := fvp.Find("", f); err == nil {
			found = append(found, path)
		}
	}
	if found == nil {
		return Outcome{State: Skipped, Reason: "none of " + strings.Join(fvp.Programs(), ", ") + " in PATH; name one with --fvp"}
	}
	return Outcome{State: Loaded, Reason: strings.Join(found, ", "), Paths: []string{""}}
}

func openFVP(path string) (Device, error) {
	where := strings.TrimPrefix(path, FVPPrefix)
	d := &fvpDevice{where: where, name: strings.TrimSpace("fvp " + where), queue: newQueue()}
	var misses []error
	for _, f := range fvpFamilies {
		if _, err := fvp.Find(where, f); err != nil {
			misses = append(misses, err)
		}
	}
	if len(misses) == len(fvpFamilies) {
		return nil, d.error("open", errors.Join(misses...))
	}
	return d, nil
}

// fvpTimeout is the default limit of a run: models are far slower than an NPU.
const fvpTimeout = 30 * time.Minute

// fvpDevice is the models found at a path. It runs one at a time: that of the last job.
type fvpDevice struct {
	where string
	name  string
	queue *queue

	// guarded by the queue
	model  *fvp.Model
	loaded fvpLoaded
}

// fvpLoaded describes the running model and what is loaded onto it.
type fvpLoaded struct {
	word    uint32 // configuration
	exact   bool
	network *fvpNetwork
}

// fvpReasons maps the models' errors to reasons.
var fvpReasons = []struct{ model, reason error }{
	{fvp.ErrMissing, ErrMissing},
	{fvp.ErrUnsupported, ErrUnsupported},
	{fvp.ErrTimeout, ErrTimeout},
}

func (d *fvpDevice) error(op string, err error) error {
	e := &DeviceError{Device: d.name, Op: op, Reason: ErrFault, Err: err}
	var m *fvp.Error
	if errors.As(err, &m) {
		e.Status = m.Status
	}
	for _, r := range fvpReasons {
		if errors.Is(err, r.model) {
			e.Reason = r.reason
		}
	}
	return e
}

// Info reports that the device runs every configuration: a matching model is started.
func (d *fvpDevice) Info() Info { return Info{Driver: "fvp", Path: d.where, Any: true} }

// Close stops the model.
func (d *fvpDevice) Close() error {
	if err := d.queue.Enter(context.Background()); err != nil {
		return d.error("close", err)
	}
	defer d.queue.Leave()
	return d.end()
}

// end stops the running model.
func (d *fvpDevice) end() error {
	m := d.model
	d.model, d.loaded = nil, fvpLoaded{}
	if m == nil {
		return nil
	}
	if err := m.Close(); err != nil {
		return d.error("close", err)
	}
	return nil
}

// start starts the right model.
func (d *fvpDevice) start(ctx context.Context, n *fvpNetwork, exact bool) error {
	c := n.program.Config
	if d.model != nil && d.model.Alive() && d.loaded.word == c.Word && d.loaded.exact == exact {
		return nil
	}
	if err := d.end(); err != nil {
		return err
	}
	m, err := fvp.Start(ctx, n.path, fvp.Options{Config: c, Exact: exact})
	if err != nil {
		return d.failed(ctx, "open", err)
	}
	d.model, d.loaded = m, fvpLoaded{word: c.Word, exact: exact}
	return nil
}

// failed distinguishes the end of the caller's context from other failures.
func (d *fvpDevice) failed(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return interrupted(ctx, d.name, op)
	}
	return d.error(op, err)
}

// Load finds the program's model, which starts with the first job.
func (d *fvpDevice) Load(p *Program) (Network, error) {
	path, err := fvp.Find(d.where, p.Config.Family)
	if err != nil {
		return nil, d.error("load", err)
	}
	return &fvpNetwork{device: d, program: p, path: path}, nil
}

type fvpNetwork struct {
	device  *fvpDevice
	program *Program
	path    string // path of the model's executable
}

func (n *fvpNetwork) Close() error { return nil }

// NewJob allocates memory for inputs and outputs in this process; all jobs share the model's
// memory.
func (n *fvpNetwork) NewJob(o JobOptions) (Job, error) {
	if len(o.Events) > len(fvp.Result{}.Events) {
		return nil, &DeviceError{Device: n.device.name, Op: "allocate", Reason: ErrUnsupported,
			Err: fmt.Errorf("got %d PMU events, want at most %d", len(o.Events), len(fvp.Result{}.Events))}
	}
	j := &fvpJob{network: n, timeout: o.Timeout, exact: o.Cycles || len(o.Events) > 0, events: make([]uint64, len(o.Events))}
	if j.timeout <= 0 {
		j.timeout = fvpTimeout
	}
	j.job = fvp.Job{Config: n.program.Config, Count: j.exact, Events: o.Events}
	for i := range n.program.Regions {
		switch r := &n.program.Regions[i]; r.Kind {
		case isa.Scratch, isa.Inputs, isa.Outputs:
			j.regions[i] = make([]byte, r.Size)
		}
	}
	return j, nil
}

type fvpJob struct {
	network *fvpNetwork
	timeout time.Duration
	exact   bool
	regions [isa.NumRegions][]byte
	job     fvp.Job
	events  []uint64
}

func (j *fvpJob) Region(i int) []byte {
	if i < 0 || i >= len(j.regions) {
		return nil
	}
	return j.regions[i]
}

func (j *fvpJob) Submit(ctx context.Context) (Result, error) {
	d := j.network.device
	if err := d.queue.Enter(ctx); err != nil {
		return Result{}, interrupted(ctx, d.name, "submit")
	}
	defer d.queue.Leave()
	if err := d.start(ctx, j.network, j.exact); err != nil {
		return Result{}, err
	}
	if err := j.place(); err != nil {
		return Result{}, err
	}
	r, err := d.model.Run(ctx, &j.job, j.timeout)
	if err != nil {
		d.loaded.network = nil // its memory is undefined
		return Result{}, d.failed(ctx, "submit", err)
	}
	d.loaded.network = j.network
	out := Result{Cycles: r.Cycles}
	if len(j.events) > 0 {
		copy(j.events, r.Events[:])
		out.Events = j.events
	}
	return out, nil
}

func (j *fvpJob) Close() error { return nil }

// fvpAlign is the alignment of regions in the model's memory.
const fvpAlign = 64

// place assigns addresses in the model's memory to the stream and the regions, and selects what to
// copy: everything for the first run, later the inputs.
func (j *fvpJob) place() error {
	d, p := j.network.device, j.network.program
	var end [2]int64
	put := func(pool fvp.Pool, size int64) (fvp.Range, bool) {
		at := end[pool]
		if at+size > int64(d.model.Sizes[pool]) {
			return fvp.Range{}, false
		}
		end[pool] = pack.Align(at+size, fvpAlign)
		return fvp.Range{Pool: pool, Offset: uint32(at), Bytes: uint32(size)}, true
	}
	var ok bool
	if j.job.Stream, ok = put(fvp.DDR, int64(len(p.Commands))); !ok {
		return d.tooLarge("command stream", int64(len(p.Commands)))
	}
	j.job.Reads, j.job.Writes = j.job.Reads[:0], j.job.Writes[:0]
	fresh := d.loaded.network != j.network
	if fresh {
		j.job.Reads = append(j.job.Reads, fvp.Read{To: j.job.Stream, From: p.Commands})
	}
	for _, i := range fvpOrder {
		r := &p.Regions[i]
		if r.Kind == isa.Unused || r.Size == 0 {
			continue
		}
		if r.Kind == isa.Fast || r.Kind == isa.Scratch {
			j.job.Regions[i], ok = put(fvp.SRAM, r.Size)
		} else {
			ok = false
		}
		if !ok {
			j.job.Regions[i], ok = put(fvp.DDR, r.Size)
		}
		if !ok {
			return d.tooLarge(r.Kind.String(), r.Size)
		}
		if r.Kind == isa.Constants && fresh {
			j.job.Reads = append(j.job.Reads, fvp.Read{To: j.job.Regions[i], From: r.Data})
		}
	}
	j.bind()
	return nil
}

// fvpOrder is the order in which regions are placed in on-chip memory.
var fvpOrder = [isa.NumRegions]int{2, 1, 0, 3, 4, 5, 6, 7}

func (d *fvpDevice) tooLarge(what string, size int64) error {
	return &DeviceError{Device: d.name, Op: "submit", Reason: ErrUnsupported,
		Err: fmt.Errorf("%s of %d bytes: the model has %d bytes of on-chip and %d of off-chip memory for jobs",
			what, size, d.model.Sizes[fvp.SRAM], d.model.Sizes[fvp.DDR])}
}

// bind schedules copies of the inputs and outputs.
func (j *fvpJob) bind() {
	p := j.network.program
	for i := range p.Inputs {
		to, mem := j.locate(&p.Inputs[i])
		j.job.Reads = append(j.job.Reads, fvp.Read{To: to, From: mem})
	}
	for i := range p.Outputs {
		from, mem := j.locate(&p.Outputs[i])
		j.job.Writes = append(j.job.Writes, fvp.Write{From: from, To: mem})
	}
}

// locate returns a tensor's location in the model's memory and in this process.
func (j *fvpJob) locate(b *Binding) (fvp.Range, []byte) {
	r := j.job.Regions[b.Region]
	r.Offset, r.Bytes = r.Offset+uint32(b.Offset), uint32(b.Bytes())
	return r, j.regions[b.Region][b.Offset:][:b.Bytes()]
}
