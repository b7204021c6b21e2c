package ethosu

import (
	"fmt"
	"io"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

// Disassemble writes the inputs, outputs and commands of a payload, with their operands
// ([npu.Disassemble]). named looks up external blocks and may be nil. It continues after invalid
// operations and returns the first error.
func Disassemble(w io.Writer, payload []byte, named delegate.NamedData) error {
	c, err := parse(payload, named)
	if err != nil {
		return err
	}
	p, err := isa.ParsePayload(c.commands)
	if err != nil {
		return streamError(err)
	}
	fmt.Fprintf(w, "; compiled for %v, %s, %d words, %d bytes of constants, %d bytes of scratch\n",
		p.Config, p.Format, len(p.Stream)/4, len(c.weights), c.scratch)
	for i := range c.inputs {
		fmt.Fprintf(w, "; input  %d: %v\n", i, &c.inputs[i])
	}
	for i := range c.outputs {
		fmt.Fprintf(w, "; output %d: %v\n", i, &c.outputs[i])
	}
	if err := npu.Disassemble(w, p.Config, p.Stream); err != nil {
		return streamError(err)
	}
	return nil
}

func (r *record) String() string {
	return fmt.Sprintf("region %d at %#x, %v, %d bytes per element", r.region, r.offset, r.shape, r.elemSize)
}
