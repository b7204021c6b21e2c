package serve

import (
	"context"
	"errors"
	"time"
)

// Bounds of the time after a load on demand that failed, during which requests fail at once.
const (
	minRetry = time.Second
	maxRetry = time.Minute
)

// need returns the current version, after a load if the model is loaded on demand. The caller must call its method done.
func (m *Model) need(ctx context.Context) (*version, error) {
	v, d, err := m.join()
	if d == nil {
		return v, err
	}
	return d.wait(ctx)
}

// wait waits until the load ends, or ctx.
func (d *pendingLoad) wait(ctx context.Context) (*version, error) {
	select {
	case <-d.done:
	case <-ctx.Done():
		if v := d.leave(); v != nil {
			v.release()
		}
		return nil, context.Cause(ctx)
	}
	if next := d.model.successor(); d.err != nil && next != nil {
		return next.need(ctx)
	}
	return d.version, d.err
}

// successor returns the model that has replaced this one, or nil.
func (m *Model) successor() *Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.next
}

// join returns the current version, or the load to wait for, which it starts if there is none.
func (m *Model) join() (*version, *pendingLoad, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current == nil && m.next != nil {
		return m.next.join()
	}
	state, _ := m.now()
	switch {
	case state == Ready:
		m.current.users.Add(1)
		m.used.Store(time.Now().UnixNano())
		return m.current, nil, nil
	case m.current != nil || !m.onDemand() || state == Failed && time.Now().Before(m.retry):
		return nil, nil, m.notReady()
	case m.pending == nil:
		ctx, cancel := context.WithCancel(m.common.ctx)
		m.pending = &pendingLoad{model: m, done: make(chan struct{}), cancel: cancel}
		go m.fulfil(ctx, m.pending)
	case int64(m.pending.waiters) >= m.queue.capacity:
		return nil, nil, &busyError{"the queue for the load of the model is full", loadPatience}
	}
	m.pending.waiters++
	return nil, m.pending, nil
}

// leave ends the wait of a request whose time is over. If the load has ended meanwhile it returns the version, which the
// caller must release.
func (d *pendingLoad) leave() *version {
	d.model.mu.Lock()
	defer d.model.mu.Unlock()
	select {
	case <-d.done:
		return d.version
	default:
	}
	if d.waiters--; d.waiters == 0 {
		d.cancel()
	}
	return nil
}

// fulfil loads the model for the requests that wait. Once there is memory for it the load continues even if none
// waits any more: a model may take longer to load than a request waits.
func (m *Model) fulfil(ctx context.Context, d *pendingLoad) {
	for ctx != nil {
		ctx = d.end(ctx, m.load(m.common.ctx, ctx, true))
	}
}

// end ends the wait for a load that has failed with err. If it was canceled because no request waited any more, and others
// have come since, it returns the context of another load for these.
func (d *pendingLoad) end(ctx context.Context, err error) (again context.Context) {
	m := d.model
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pending != d { // answered
		return nil
	}
	if d.waiters > 0 && ctx.Err() != nil && errors.Is(err, context.Canceled) && m.common.ctx.Err() == nil {
		again, d.cancel = context.WithCancel(m.common.ctx)
		return again
	}
	if d.err = err; m.state == Failed {
		d.err = m.notReady()
	}
	m.close(d)
	return nil
}

// answer passes a new version to the requests that wait. It is theirs before another load can unload it. m.mu is locked.
func (m *Model) answer(v *version) {
	if d := m.pending; d != nil {
		d.version = v
		v.users.Add(int64(d.waiters))
		m.close(d)
	}
}

// close ends the wait of all requests. m.mu is locked.
func (m *Model) close(d *pendingLoad) {
	m.pending = nil
	d.cancel()
	close(d.done)
}

// onDemand reports whether requests load the model. m.mu is locked.
func (m *Model) onDemand() bool { return m.config.OnDemand && !m.stopped }

// Available reports whether the model is ready, or loaded by the next request.
func (m *Model) Available() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	state, _ := m.now()
	return state == Ready || m.onDemand()
}

// postpone sets when a model whose load failed is loaded on demand again. m.mu is locked.
func (m *Model) postpone() {
	m.pause = min(max(2*m.pause, minRetry), maxRetry)
	m.retry = time.Now().Add(m.pause)
}

// evict unloads the program, if the model is loaded on demand and may agrees. It does not wait for requests in progress. It
// returns nil if the model remains loaded.
func (m *Model) evict(why string, may func(v *version) bool) *version {
	if !m.loading.TryLock() {
		return nil
	}
	defer m.loading.Unlock()
	var old *version
	m.change(func() {
		if m.config.OnDemand && m.current != nil && may(m.current) {
			old, m.current, m.state, m.reason, m.evicted = m.current, nil, Unloaded, why, true
		}
	})
	if old != nil {
		m.common.retire(old)
		if m.config.Unloaded != nil {
			m.config.Unloaded(why)
		}
	}
	return old
}

// watchIdle schedules the unload of an idle model. m.mu is locked.
func (m *Model) watchIdle(after time.Duration) {
	if m.config.OnDemand && m.config.Idle > 0 && m.idle == nil {
		m.idle = time.AfterFunc(after, m.unloadIdle)
	}
}

// unloadIdle unloads the model if it has been idle for its time, and otherwise looks again later.
func (m *Model) unloadIdle() {
	m.change(func() { m.idle = nil })
	m.evict("idle", func(v *version) bool { return v.isIdle() && m.unused() >= m.config.Idle })
	m.change(func() {
		if m.current != nil {
			m.watchIdle(max(m.config.Idle-m.unused(), m.config.Idle/8, time.Millisecond))
		}
	})
}

// unused is the time since the last request.
func (m *Model) unused() time.Duration { return time.Since(time.Unix(0, m.used.Load())) }

// isIdle reports whether nothing uses the version. Model.mu is locked.
func (v *version) isIdle() bool { return v.users.Load() == 1 && v.sequences.count() == 0 }

// done ends the use of a request.
func (v *version) done() {
	v.model.used.Store(time.Now().UnixNano())
	v.release()
}
