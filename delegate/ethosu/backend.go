package ethosu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/ethosu"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
	"github.com/etrun-go/etrun/internal/pack"
)

// ID returns the name that identifies the delegate in programs.
func (Backend) ID() string { return ID }

// Probe returns the status of the first device that "auto" selects; the software NPU is always
// available. [ethosu.Drivers] lists all drivers.
func (Backend) Probe() delegate.Status {
	for _, d := range ethosu.Drivers() {
		if !d.Auto {
			continue
		}
		if found := d.Probe(); found.State == ethosu.Loaded {
			return delegate.Status{Loaded: true, Engine: d.Name, Detail: found.Reason}
		}
	}
	return delegate.Status{Detail: "no device"}
}

// Compile reads a payload, checks it against the call's arguments and every address of its command
// stream against its memory regions, and loads it onto a device.
func (b Backend) Compile(ctx context.Context, p *delegate.Payload) (delegate.Image, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c, err := parse(p.Data, p.Named)
	if err != nil {
		return nil, err
	}
	im := &image{container: c, options: jobOptions(p.Specs), backend: &b}
	if im.program, err = c.program(p.Data); err != nil {
		return nil, err
	}
	im.scratch = scratchBytes(im.program)
	if err := p.Limits.Check(ID, 0, im.scratch); err != nil {
		return nil, err
	}
	if err := im.plan(p); err != nil {
		return nil, err
	}
	im.method, im.index = p.Method, p.Index
	if im.device, im.network, err = ethosu.Load(b.Device, im.program); err != nil {
		return nil, deviceError(err)
	}
	return im, nil
}

// program parses the driver payload and its command stream.
func (c *container) program(whole []byte) (*ethosu.Program, error) {
	payload, err := isa.ParsePayload(c.commands)
	if err != nil {
		return nil, streamError(err)
	}
	p := &ethosu.Program{Config: payload.Config, Commands: payload.Stream, Payload: c.commands, Container: whole,
		Inputs: bindings(c.inputs), Outputs: bindings(c.outputs)}
	if p.Stream, err = npu.Decode(payload.Config, payload.Stream); err != nil {
		return nil, streamError(err)
	}
	c.regions(p)
	if err := p.Stream.Check(&p.Regions); err != nil {
		return nil, streamError(err)
	}
	return p, nil
}

// regions sets the memory regions. The payload does not contain the size of the fast scratch
// region: it is derived from the addresses in the stream.
func (c *container) regions(p *ethosu.Program) {
	r := &p.Regions
	r[regionConstants] = isa.Region{Kind: isa.Constants, Size: int64(len(c.weights)), Data: c.weights}
	r[regionScratch] = isa.Region{Kind: isa.Scratch, Size: c.scratch}
	if n := p.Stream.Footprint()[regionFast]; n > 0 {
		r[regionFast] = isa.Region{Kind: isa.Fast, Size: n}
	}
	kinds := [...]isa.RegionKind{regionInputs: isa.Inputs, regionOutputs: isa.Outputs}
	for _, rec := range append(c.inputs[:len(c.inputs):len(c.inputs)], c.outputs...) {
		if rec.region < regionInputs {
			continue
		}
		end := int64(pack.Align(rec.offset+rec.bytes(), blockAlign))
		r[rec.region] = isa.Region{Kind: kinds[rec.region], Size: max(r[rec.region].Size, end)}
	}
}

// scratchBytes returns the memory of one instance: the regions that a run writes, and the working
// memory of the software NPU.
func scratchBytes(p *ethosu.Program) (n int64) {
	for i := range p.Regions {
		if p.Regions[i].Kind.Writable() {
			n += min(p.Regions[i].Size, math.MaxInt64>>4)
		}
	}
	return n + p.Stream.WorkingBytes()
}

func bindings(records []record) []ethosu.Binding {
	out := make([]ethosu.Binding, len(records))
	for i, r := range records {
		out[i] = ethosu.Binding{Region: r.region, Offset: r.offset, Shape: r.shape, ElemSize: r.elemSize}
	}
	return out
}

// jobOptions parses the compile specs that configure runs. Others only concern the compiler.
func jobOptions(specs []delegate.CompileSpec) ethosu.JobOptions {
	var o ethosu.JobOptions
	for _, s := range specs {
		name, ok := strings.CutPrefix(s.Key, "ethosu.")
		switch {
		case !ok:
		case name == "timeout_ns" && len(s.Value) == 8:
			o.Timeout = time.Duration(binary.LittleEndian.Uint64(s.Value))
		case name == "enable_cycle_counter" && len(s.Value) == 1:
			o.Cycles = s.Value[0] != 0
		case strings.HasPrefix(name, "pmu_event") && len(s.Value) == 4:
			o.Events = append(o.Events, binary.LittleEndian.Uint32(s.Value))
		}
	}
	o.Timeout = max(o.Timeout, 0)
	return o
}

// streamError wraps an error about a command stream or driver payload in a *delegate.Error.
func streamError(err error) error {
	reason := delegate.ErrPayload
	if errors.Is(err, isa.ErrUnsupported) {
		reason = delegate.ErrUnsupported
	}
	return &delegate.Error{Backend: ID, Reason: reason, Place: "cmd_data", Err: err}
}

// Survey reports the stale outputs of all payloads at once as a *StaleError. Other errors take
// precedence, because no quantization fixes them.
func (b Backend) Survey(payloads []*delegate.Payload) error {
	var all StaleError
	for _, p := range payloads {
		c, err := parse(p.Data, p.Named)
		if err == nil {
			im := &image{container: c, backend: &b}
			err = im.plan(p)
		}
		if stale, ok := errors.AsType[*StaleError](err); ok {
			all.Outputs = append(all.Outputs, stale.Outputs...)
		} else if err != nil {
			return fmt.Errorf("delegate %d (%q): %w", p.Index, ID, err)
		}
	}
	if len(all.Outputs) == 0 {
		return nil
	}
	return &delegate.Error{Backend: ID, Reason: delegate.ErrPayload, Err: &all}
}
