package rx

const maxListed = 1 << 16 // bytes of one string

// List returns all strings of e in ascending order. It returns false if e has more than limit
// strings, or one longer than 64 KiB.
func (s *Space) List(e Expr, limit int) ([]string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := lister{s: s, limit: limit, path: map[Expr]bool{}}
	e = s.known(e)
	if s.isEmpty(e) {
		return nil, s.err == nil
	}
	if !l.walk(e) || s.err != nil {
		return nil, false
	}
	return l.found, true
}

type lister struct {
	s      *Space
	limit  int
	total  int // bytes
	prefix []byte
	path   map[Expr]bool
	found  []string
}

// walk adds l.prefix followed by each string of e, which is not empty. A set that is met again
// on the path to itself has infinitely many strings.
func (l *lister) walk(e Expr) bool {
	s := l.s
	if l.path[e] || len(l.prefix) > maxListed {
		return false
	}
	if s.nodes[e].nullable {
		if l.total += len(l.prefix); len(l.found) == l.limit || l.total > 1<<26 {
			return false
		}
		l.found = append(l.found, string(l.prefix))
	}
	l.path[e] = true
	defer delete(l.path, e)
	for b := range 256 {
		d, _ := s.derive(e, byte(b))
		s.spend(1)
		if s.isEmpty(d) {
			continue
		}
		l.prefix = append(l.prefix, byte(b))
		ok := l.walk(d)
		l.prefix = l.prefix[:len(l.prefix)-1]
		if !ok {
			return false
		}
	}
	return true
}
