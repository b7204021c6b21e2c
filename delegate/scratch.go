package delegate

import (
	"io"
	"sync"
)

// Scratch is working memory that the units of one method instance use in turn: one of
// them runs at a time, and none leaves anything there for its next run. Backends keep
// parts of their own in it. It is safe for concurrent use.
type Scratch struct {
	mu    sync.Mutex
	parts map[any]io.Closer
}

// Part is the part under a key, made by make where there is none yet. The scratch closes
// it; units that still use it then keep what they need of it.
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

// Close gives back the parts. Closing twice, and closing nil, is fine.
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
