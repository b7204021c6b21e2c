package delegate

import (
	"io"
	"sync"
)

// Scratch is working memory shared by the units of one method instance: only one of them runs at a
// time, and none leaves data there for its next run. Backends store their own parts in it. It is
// safe for concurrent use.
type Scratch struct {
	mu    sync.Mutex
	parts map[any]io.Closer
}

// Part returns the part stored under a key; if there is none, make creates it. Scratch closes its
// parts. Units that still use a closed part keep what they need of it.
func (s *Scratch) Part(key any, make func() (io.Closer, error)) (io.Closer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if part, ok := s.parts[key]; ok {
		return part, nil
	}
	part, err := make()
	if err != nil {
		return nil, err
	}
	if s.parts == nil {
		s.parts = map[any]io.Closer{}
	}
	s.parts[key] = part
	return part, nil
}

// Memory returns the memory of the parts that have a method of this name. That of nil is 0.
func (s *Scratch) Memory() (n int64) {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range s.parts {
		if p, ok := part.(interface{ Memory() int64 }); ok {
			n += p.Memory()
		}
	}
	return n
}

// Close closes the parts. Closing twice, and closing nil, is allowed.
func (s *Scratch) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var first error
	for _, part := range s.parts {
		if err := part.Close(); err != nil && first == nil {
			first = err
		}
	}
	s.parts = nil
	return first
}
