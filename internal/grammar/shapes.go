package grammar

import (
	"sync"

	"github.com/realizar/realizar/internal/rx"
)

// maxShapes is the size of a vocabulary's cache of shapes, in bytes.
const maxShapes = 64 << 20

// shapes caches the shapes of a vocabulary for all grammars, by the structure of the lexemes. It
// has two generations. A full newer one replaces the older one; a hit in the older moves to the
// newer.
type shapes struct {
	mu           sync.Mutex
	newer, older map[shapeKey]*shape
	size         int
}

type shapeKey struct {
	key    rx.Key
	tier   int
	gather bool
}

func (s *shapes) find(k shapeKey) *shape {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.newer[k]; have != nil {
		return have
	}
	have := s.older[k]
	if have != nil {
		s.add(k, have)
	}
	return have
}

func (s *shapes) keep(k shapeKey, made *shape) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(k, made)
}

func (s *shapes) add(k shapeKey, made *shape) {
	if s.size += made.size; s.newer == nil || s.size > maxShapes/2 {
		s.newer, s.older, s.size = map[shapeKey]*shape{}, s.newer, made.size
	}
	s.newer[k] = made
}
