package prepare

import (
	"sync"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Claims counts the readers of each byte range of a program's files, so that the memory of weights that nothing reads any more can be
// released. Its methods may be called concurrently. Nil releases nothing.
type Claims struct {
	File     *pte.Program
	Backends map[string]delegate.Backend // by ID
	Data     func(key string) []byte     // named data of the program and its data files

	once sync.Once
	list []claim
}

// claim is a byte range that is read. Claims may overlap.
type claim struct {
	data []byte
	uses int // delegates and values that refer to it
}

// owned reports whether data is part of a byte range that only one delegate or value refers to.
func (c *Claims) owned(data []byte) bool {
	if c == nil {
		return false
	}
	c.once.Do(func() { c.list = c.find() })
	owner := false
	for i := range c.list {
		switch in := &c.list[i]; {
		case !cpu.Overlap(in.data, data):
		case in.uses > 1 || !cpu.Contains(in.data, data) || owner:
			return false
		default:
			owner = true
		}
	}
	return owner
}

// release releases the memory of such data.
func (c *Claims) release(data []byte) bool {
	if !c.owned(data) {
		return false
	}
	cpu.Discard(data)
	return true
}

// find lists the byte ranges that are read of a program's files. It returns nil if a delegate
// may read bytes that it does not declare.
func (c *Claims) find() []claim {
	names := make(map[string]int)
	var list []claim
	for m := range c.File.Methods {
		for i := range c.File.Methods[m].Delegates {
			g := &c.File.Methods[m].Delegates[i]
			namer, ok := c.Backends[g.ID].(delegate.Namer)
			if !ok {
				return nil
			}
			keys, err := namer.Names(g.Data)
			if err != nil {
				return nil
			}
			for _, k := range keys {
				names[k]++
			}
			list = append(list, claim{g.Data, 1})
		}
		list = append(list, c.constants(&c.File.Methods[m])...)
	}
	for key, n := range names {
		list = append(list, claim{c.Data(key), n})
	}
	return list
}

// constants are the tensors of a method, whose bytes are used in place as long as a step reads them.
func (c *Claims) constants(m *pte.Method) (list []claim) {
	for v := range m.Values {
		t := m.Values[v].Tensor
		if m.Values[v].Kind != tensor.KindTensor {
			continue
		}
		data := t.Data
		if t.Storage == pte.External || t.Storage == pte.ExternalPlanned {
			data = c.Data(t.Name)
		}
		if len(data) > 0 {
			list = append(list, claim{data, 1})
		}
	}
	return list
}
