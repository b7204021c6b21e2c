package etrun

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Warnings returns, without duplicates, what the program ignored or runs slower than it could.
// Loading a method may add warnings. It returns nil once the program and all its methods are closed.
func (p *Program) Warnings() []delegate.Warning {
	if !p.keep() {
		return nil
	}
	defer p.release()
	list := append(p.unusedBackends(), p.unusedData()...)
	for i := range p.slots {
		done := p.slots[i].Ready()
		if done == nil {
			continue
		}
		for _, img := range done.Images {
			if w, ok := img.(delegate.Warner); ok {
				list = append(list, w.Warnings()...)
			}
		}
		if e := done.Refusal.Load(); e != nil {
			list = append(list, delegate.Warning{Class: delegate.WarnEngine, Text: fmt.Sprintf(
				"method %.100q: the region that ends at chain %d, instruction %d runs on operators at some sizes, because its delegate rejected them: %v",
				p.spec.Methods[i].Name, e.Origin.Chain, e.Origin.Index, e.Err)})
		}
		for _, r := range p.fileRepairs(i, done.IR) {
			list = append(list, delegate.Warning{Class: delegate.WarnRepair,
				Text: fmt.Sprintf("method %.100q: repaired an exporter fault: %s", p.spec.Methods[i].Name, r)})
		}
		for _, text := range done.Suspect {
			list = append(list, delegate.Warning{Class: delegate.WarnFault,
				Text: fmt.Sprintf("method %.100q: results may be wrong, because of an exporter fault that is not repaired: %s",
					p.spec.Methods[i].Name, text)})
		}
	}
	var once []delegate.Warning
	for _, w := range list {
		if !slices.Contains(once, w) {
			once = append(once, w)
		}
	}
	return once
}

// fileRepairs lists the repaired faults of a method outside its delegates.
func (p *Program) fileRepairs(method int, m *ir.Method) (list []string) {
	for _, r := range m.Relaid {
		list = append(list, r.String())
	}
	for _, r := range m.Redirected {
		list = append(list, r.String())
	}
	if !p.config.asWritten {
		for _, f := range p.spec.Methods[method].Initial {
			list = append(list, f.String())
		}
	}
	return list
}

// unusedBackends lists the configured backends (not zero values) that no delegate and no lowering
// uses.
func (p *Program) unusedBackends() (list []delegate.Warning) {
	for _, id := range slices.Sorted(maps.Keys(p.config.backends)) {
		if _, ok := p.config.backends[id].(lowering.Compiler); ok && p.config.lowering.lowers() {
			continue
		}
		if reflect.ValueOf(p.config.backends[id]).IsZero() || p.asksFor(id) {
			continue
		}
		list = append(list, delegate.Warning{Class: delegate.WarnBackend, Text: fmt.Sprintf("%.100q: no delegate of the program uses this backend", id)})
	}
	return list
}

func (p *Program) asksFor(backend string) bool {
	return slices.ContainsFunc(p.spec.Methods, func(m pte.Method) bool {
		return slices.ContainsFunc(m.Delegates, func(d pte.Delegate) bool { return d.ID == backend })
	})
}

// unusedData lists the sources that are not used, once all delegates are compiled: until then it is
// not known which data they use.
func (p *Program) unusedData() (list []delegate.Warning) {
	used := make([]bool, len(p.config.data))
	for i := range p.spec.Methods {
		m := &p.spec.Methods[i]
		if len(m.Delegates) > 0 && p.slots[i].Ready() == nil {
			return nil
		}
		p.markExternal(m, used)
	}
	for i, src := range p.config.data {
		if !used[i] && !p.data.asked[i].Load() {
			list = append(list, delegate.Warning{Class: delegate.WarnData, Text: cmp.Or(src.name, fmt.Sprintf("data %d", i)) + ": the program does not use this data"})
		}
	}
	return list
}

// markExternal marks the sources of the method's external tensors.
func (p *Program) markExternal(m *pte.Method, used []bool) {
	for v := range m.Values {
		if m.Values[v].Kind != tensor.KindTensor {
			continue
		}
		t := m.Values[v].Tensor
		if e, ok := p.data.entries[t.Name]; ok && e.source != program && (t.Storage == pte.External || t.Storage == pte.ExternalPlanned) {
			used[e.source] = true
		}
	}
}
