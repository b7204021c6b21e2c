package etrun

import (
	"sync"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// claims counts the readers of each byte range of a program's files, so that the memory of weights
// that nothing reads any more can be released.
type claims struct {
	once sync.Once
	list []claim
}

// claim is a byte range that is read. Claims may overlap.
type claim struct {
	data []byte
	uses int // delegates and values that refer to it
}

// owned reports whether data is part of a byte range that only one delegate or value refers to.
func (c *claims) owned(p *pte.Program, d *dataMap, backends map[string]delegate.Backend, data []byte) bool {
	c.once.Do(func() { c.list = findClaims(p, d, backends) })
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
func (c *claims) release(p *pte.Program, d *dataMap, backends map[string]delegate.Backend, data []byte) bool {
	if !c.owned(p, d, backends, data) {
		return false
	}
	cpu.Discard(data)
	return true
}

// findClaims lists the byte ranges that are read of a program's files. It returns nil if a delegate
// may read bytes that it does not declare.
func findClaims(p *pte.Program, d *dataMap, backends map[string]delegate.Backend) []claim {
	names := make(map[string]int)
	var list []claim
	for m := range p.Methods {
		for i := range p.Methods[m].Delegates {
			g := &p.Methods[m].Delegates[i]
			namer, ok := backends[g.ID].(delegate.Namer)
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
		list = append(list, constantClaims(&p.Methods[m], d)...)
	}
	for key, e := range d.entries {
		if names[key] > 0 {
			list = append(list, claim{e.Data, names[key]})
		}
	}
	return list
}

// constantClaims are the tensors of a method, whose bytes are used in place as long as a step reads
// them.
func constantClaims(m *pte.Method, d *dataMap) (list []claim) {
	for v := range m.Values {
		t := m.Values[v].Tensor
		if m.Values[v].Kind != tensor.KindTensor {
			continue
		}
		data := t.Data
		if t.Storage == pte.External || t.Storage == pte.ExternalPlanned {
			data = d.entries[t.Name].Data
		}
		if len(data) > 0 {
			list = append(list, claim{data, 1})
		}
	}
	return list
}
