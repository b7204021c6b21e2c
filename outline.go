package etrun

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/prepare"
)

// Outline is the dataflow of a method as it is in the file, whether it can run here or not. An operator without a kernel
// has a signature that follows from its calls.
type Outline struct {
	IR        *ir.Method      // must not be changed
	Missing   map[string]bool // operators without a kernel, by name
	Delegates []delegate.Info // of those that do not compile here only Backend is set
	Faults    []error         // by delegate: why it does not compile here, nil if it does

	program *Program
	from    *prepare.Outline
}

// Outline describes a method, which [Program.Load] may refuse, before any pass changes it. The empty name means "forward".
// It fails for methods whose instructions contradict each other. The outline must be closed.
func (p *Program) Outline(ctx context.Context, name string) (o *Outline, err error) {
	i, err := p.methodIndex(name)
	if err != nil {
		return nil, err
	}
	if err := p.acquire(); err != nil {
		return nil, err
	}
	defer func() {
		if fault := recover(); fault != nil {
			err = &PanicError{Value: fault, Stack: debug.Stack()}
		}
		if err != nil {
			o = nil
			p.release()
		}
	}()
	spec := &p.spec.Methods[i]
	if spec.Err != nil {
		return nil, spec.Err
	}
	from, err := p.slots[i].Outline(ctx)
	if err != nil {
		return nil, err
	}
	o = &Outline{IR: from.IR, Missing: from.Missing, Faults: from.Faults, program: p, from: from}
	for k, img := range from.Images {
		info := delegate.Info{}
		if img != nil {
			info = img.Info()
		}
		info.Backend = spec.Delegates[k].ID
		o.Delegates = append(o.Delegates, info)
	}
	return o, nil
}

// Close frees the outline's delegates, whose descriptions are then no longer valid.
func (o *Outline) Close() error {
	if o.program == nil {
		return fmt.Errorf("outline: %w", ErrClosed)
	}
	o.from.Close()
	program := o.program
	o.program = nil
	return program.release()
}
