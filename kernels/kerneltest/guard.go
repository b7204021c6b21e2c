package kerneltest

import (
	"bytes"
	"fmt"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// band is the number of guard bytes before and after a tensor's bytes: more than one store of a
// vector kernel can overrun.
const band = 128

// guarded is a tensor argument in its own memory, between guard bytes.
type guarded struct {
	t      *tensor.Tensor
	memory []byte // band, bytes up to the capacity, band
	size   int    // bytes up to the capacity
	poison byte
	before []byte // original contents up to the size; nil for an out
	proto  *tensor.Tensor
	unread bool // its elements do not count
}

// guard copies proto with its contents into guarded memory. poison fills the guard bytes and, for
// an out without contents, its elements.
func guard(proto *tensor.Tensor, poison byte, out bool) *guarded {
	size := proto.NBytes()
	if proto.Dynamism == tensor.DynamicBound {
		size = proto.Capacity() * proto.DType.Size()
	}
	g := &guarded{proto: proto, size: size}
	g.memory = tensor.AlignedBytes(size + 2*band)
	if !out {
		g.before = make([]byte, size)
		copy(g.before, proto.Data)
	}
	g.t = tensor.Make(proto.DType, proto.Sizes, proto.DimOrder, proto.Dynamism)
	g.t.Const = proto.Const
	if proto.Dynamism != tensor.Static {
		g.t.Limit(proto.Capacity())
	}
	g.reset(poison)
	return g
}

// reset fills the memory with poison and restores the tensor's original contents.
func (g *guarded) reset(poison byte) {
	for i := range g.memory {
		g.memory[i] = poison
	}
	g.poison = poison
	copy(g.bytes(), g.before)
	g.t.Bind(g.bytes())
}

// bytes returns the memory between the guard bytes, whatever became of the tensor.
func (g *guarded) bytes() []byte { return g.memory[band : band+g.size : band+g.size] }

// intact returns an error for a guard byte that was written.
func (g *guarded) intact() error {
	for i, b := range g.memory {
		if b == g.poison || i >= band && i < band+g.size {
			continue
		}
		if i < band {
			return fmt.Errorf("byte %d before the data written", band-i)
		}
		return fmt.Errorf("byte %d after the data written", i-band-g.size)
	}
	return nil
}

// unwritten returns an error for a change of a read-only argument.
func (g *guarded) unwritten() error {
	if g.t.String() != g.proto.String() || !bytes.Equal(g.t.DimOrder, g.proto.DimOrder) {
		return fmt.Errorf("input resized from %v to %v", g.proto, g.t)
	}
	for i, b := range g.before {
		if g.bytes()[i] != b {
			return fmt.Errorf("byte %d of an input written", i)
		}
	}
	return nil
}

// sound returns an error for an out that exceeds its declaration.
func (g *guarded) sound() error {
	t := g.t
	switch n := t.Numel(); {
	case t.DType != g.proto.DType || !bytes.Equal(t.DimOrder, g.proto.DimOrder) || t.Rank() != g.proto.Rank():
		return fmt.Errorf("out turned from %v into %v", g.proto, t)
	case t.Dynamism == tensor.Static && t.String() != g.proto.String(), n > g.proto.Capacity():
		return fmt.Errorf("out declared as %v resized to %v", g.proto, t)
	case len(t.Data) != t.NBytes():
		return fmt.Errorf("out %v with %d bytes", t, len(t.Data))
	}
	return nil
}
