package cpu

import "sync"

// MapDense is [MapMemory] for memory that is read often, such as weights. Small areas are one after the other, so that huge pages
// hold several of them: decoding with a language model of many layers takes 0.8 of the time. Each is freed by itself.
func MapDense(size int64) (*Mapping, error) {
	if size <= 0 || size >= largePage {
		return MapMemory(size)
	}
	return dense.part(int(size))
}

var dense region

// region is memory of which areas are taken.
type region struct {
	lock sync.Mutex
	rest []byte // nobody has it yet
	more bool   // the first memory, which is enough for small programs, has small pages
}

// regionSize is the size of the memory that a region maps at once. What nobody has is not touched, except in a huge page.
const regionSize = 8 * largePage

func (r *region) part(size int) (*Mapping, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	n := (size + int(pageSize) - 1) &^ (int(pageSize) - 1)
	if n > len(r.rest) {
		if err := r.extend(); err != nil {
			return nil, err
		}
	}
	m := &Mapping{bytes: r.rest[:size:n]}
	r.rest = r.rest[n:]
	return m, nil
}

// extend replaces the rest, which is too small.
func (r *region) extend() error {
	m, err := MapSparse(largePage)
	if r.more {
		m, err = MapMemory(regionSize)
	}
	if err != nil {
		return err
	}
	(&Mapping{bytes: r.rest}).Close()
	r.rest, r.more = m.bytes, true
	return nil
}
