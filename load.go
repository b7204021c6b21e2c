package etrun

import "context"

// Load makes a method ready to execute. What its instances share is prepared by the
// first load: operators, backends and external data are found, delegates compiled,
// constants folded and the memory planned. The others wait for that, each no longer
// than its ctx allows; it goes on without the one that began it. The empty name means
// "forward". Errors are *LoadError; everything that is missing is reported at once.
func (p *Program) Load(ctx context.Context, name string, options ...MethodOption) (*Method, error) {
	i, err := p.methodIndex(name)
	if err != nil {
		return nil, err
	}
	if err := p.acquire(); err != nil {
		return nil, err
	}
	m, err := p.load(ctx, i, options)
	if err != nil {
		p.release()
		return nil, loadError(p.path(), p.spec.Methods[i].Name, err, ErrFormat)
	}
	return m, nil
}

func (p *Program) load(ctx context.Context, index int, options []MethodOption) (*Method, error) {
	shared, err := p.slots[index].get(ctx, p)
	if err != nil {
		return nil, err
	}
	m := &Method{program: p, index: index, prepared: shared, limit: p.config.limits.Instructions, planning: p.config.planning()}
	for _, o := range options {
		o(m)
	}
	if err := m.build(ctx); err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}
