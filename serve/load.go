package serve

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Load opens the program, tests each method, and replaces the current program, if any, which is
// closed after its last request; its sequences end. If Load fails the old program stays in use.
// Loads of one model run one at a time.
func (m *Model) Load(ctx context.Context) error { return m.load(ctx, ctx, false) }

// load loads the model, unless it is loaded and only a missing one is wanted. wait bounds the wait for memory.
func (m *Model) load(ctx, wait context.Context, missing bool) (err error) {
	end := func() {}
	defer func() { end() }() // after loading is unlocked: the load that begins then may have to unload this model
	m.loading.Lock()
	defer m.loading.Unlock()
	switch {
	case m.retired != nil:
		return fmt.Errorf("%w: model %q", m.retired, m.config.Name)
	case missing && m.current != nil:
		return nil
	case missing && m.isStopped(): // since the request has begun to wait
		return &stateError{m.config.Name, Unloaded, ""}
	}
	if end, err = m.common.begin(wait); err != nil {
		return err
	}
	defer func() {
		if m.config.Loaded != nil {
			m.config.Loaded(err)
		}
	}()
	n := m.expected()
	if err := m.common.reserve(wait, m, n); err != nil {
		return err
	}
	m.opening.Store(true)
	v, err := m.tryOpen(ctx, n)
	if err != nil {
		return err // what is reported stays that of the version that failed
	}
	m.replace(v, Ready)
	m.opening.Store(false)
	return nil
}

// expected is the memory that the next version is expected to need.
func (m *Model) expected() int64 {
	switch {
	case m.size > 0:
		return m.size
	case m.config.Size != nil:
		return max(m.config.Size(), 0)
	}
	return 0
}

// tryOpen opens the program, for which n bytes of memory are reserved.
func (m *Model) tryOpen(ctx context.Context, n int64) (*version, error) {
	m.change(func() {
		if m.current == nil {
			m.state = Loading
		}
	})
	v, err := m.open(ctx)
	if err == nil {
		err = m.count(ctx, v, n)
	}
	if err == nil {
		return v, nil
	}
	_ = m.common.reserve(ctx, m, -n) // cannot fail
	m.change(func() {
		switch {
		case m.current != nil:
		case errors.Is(err, ErrNoRoom):
			m.state = Unloaded
		default:
			m.state, m.reason = Failed, err.Error()
			m.postpone()
		}
	})
	return nil, err
}

// count counts the memory of an opened version, for which n bytes are reserved. If there is not enough it closes the version.
func (m *Model) count(ctx context.Context, v *version, n int64) error {
	if m.config.Memory == nil {
		v.bytes = n
		return nil
	}
	m.size = max(m.config.Memory(), 1)
	err := m.common.possible(m, m.size)
	if err == nil {
		err = m.common.reserve(ctx, m, m.size-n)
	}
	if err != nil {
		v.release()
		return err
	}
	v.bytes = m.size
	return nil
}

// Unload closes the program after its last request, and waits for that until ctx ends. It fails if
// no program is loaded.
func (m *Model) Unload(ctx context.Context) error {
	m.loading.Lock()
	defer m.loading.Unlock()
	old := m.replace(nil, Unloaded)
	m.change(func() { m.stopped = true })
	if old == nil {
		return fmt.Errorf("model %q: %w", m.config.Name, ErrNotReady)
	}
	select {
	case <-old.closed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// isStopped reports whether requests do not load the model any more.
func (m *Model) isStopped() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopped
}

// retire is Unload for good. Later loads return why.
func (m *Model) retire(why error) error {
	m.bar(why)
	return m.Unload(context.Background())
}

// bar prevents later loads.
func (m *Model) bar(why error) {
	m.loading.Lock()
	defer m.loading.Unlock()
	m.retired = why
}

// replace swaps versions and retires the old one, which it returns.
func (m *Model) replace(v *version, state State) (old *version) {
	m.change(func() {
		old, m.current, m.state, m.reason = m.current, v, state, ""
		m.evicted = v == nil && (old != nil || m.evicted)
		if v != nil {
			m.stopped, m.pause = false, 0
			m.used.Store(time.Now().UnixNano())
			m.watchIdle(m.config.Idle)
			m.answer(v)
		} else if m.idle != nil {
			m.idle.Stop()
			m.idle = nil
		}
	})
	if old != nil {
		m.common.retire(old)
	}
	return old
}
