package serve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// begin waits until no other load is in progress, if memory is limited: loads at once would count on the same memory. end is not nil.
func (h *common) begin(ctx context.Context) (end func(), err error) {
	end = func() {}
	if h.limit == 0 {
		return end, nil
	}
	select {
	case h.loading <- struct{}{}:
		return func() { <-h.loading }, nil
	case <-h.ctx.Done():
		return end, context.Cause(h.ctx)
	case <-ctx.Done():
		return end, context.Cause(ctx)
	}
}

// possible returns an error if a model with n bytes exceeds the limit alone.
func (h *common) possible(m *Model, n int64) error {
	if h.limit > 0 && n > h.limit {
		return noMemory(m, n, h.limit, "")
	}
	return nil
}

// reserve counts n more bytes for a model, and unloads others until they fit. n may be negative.
func (h *common) reserve(ctx context.Context, m *Model, n int64) error {
	if err := h.possible(m, n); err != nil {
		return err
	}
	for {
		freed := h.freed.next() // before the look at what is used
		h.settle()
		switch {
		case h.fits(n):
			return nil
		case h.evict(m, (*version).isIdle):
		case h.isAnyLeaving():
			if err := h.wait(ctx, freed); err != nil {
				return err
			}
		case !h.evict(m, func(v *version) bool { return v.sequences.count() == 0 }) && !isClosed(freed):
			return noMemory(m, n, h.limit, ", and those that are loaded must stay")
		}
	}
}

// wait waits until memory is freed, ctx ends, or the server is closed.
func (h *common) wait(ctx context.Context, freed <-chan struct{}) error {
	select {
	case <-freed:
		return nil
	case <-h.ctx.Done():
		return context.Cause(h.ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// ErrNoRoom is a load without enough memory within the limit of all models, which later loads may have.
var ErrNoRoom = fmt.Errorf("%w: too little memory", ErrNotReady)

// noMemory returns the error of a model without enough memory.
func noMemory(m *Model, n, limit int64, why string) error {
	return fmt.Errorf("%w: model %q needs %d bytes, the limit of all models is %d%s", ErrNoRoom, m.config.Name, n, limit, why)
}

// fits counts n bytes unless they exceed the limit. No reader of the count ever sees bytes that are not granted.
func (h *common) fits(n int64) bool {
	for {
		used := h.used.Load()
		if h.limit > 0 && n > 0 && used+n > h.limit {
			return false
		}
		if h.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// settle counts what the current versions of all models use now.
func (h *common) settle() {
	for _, m := range h.models() {
		m.settle()
	}
}

// settle counts what the current version uses now.
func (m *Model) settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.current; v != nil && m.config.Memory != nil && !m.opening.Load() {
		if n := m.config.Memory(); n > 0 {
			m.common.used.Add(n - v.bytes)
			v.bytes = n
		}
	}
}

// evict unloads the model that was not used for the longest time, of those for which may agrees.
func (h *common) evict(loading *Model, may func(v *version) bool) bool {
	models := h.models()
	slices.SortFunc(models, func(a, b *Model) int {
		return cmp.Or(cmp.Compare(a.used.Load(), b.used.Load()), cmp.Compare(a.config.Name, b.config.Name))
	})
	return slices.ContainsFunc(models, func(m *Model) bool { return m != loading && m.evict("memory", may) != nil })
}

// retire closes a version that no request finds any more, after its last request.
func (h *common) retire(v *version) {
	h.mu.Lock()
	h.leaving = append(h.leaving, v)
	h.mu.Unlock()
	v.sequences.close()
	v.release()
}

// isAnyLeaving reports whether versions that no request finds any more are still open.
func (h *common) isAnyLeaving() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.leaving) > 0
}

// closed ends the count of a version's memory.
func (h *common) closed(v *version) {
	h.used.Add(-v.bytes)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leaving = slices.DeleteFunc(h.leaving, func(x *version) bool { return x == v })
	h.freed.note() // who sees that none is leaving sees this, too
}
