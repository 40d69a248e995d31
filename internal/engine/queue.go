package engine

import "slices"

// A queue is the order in which sequences are served: by priority, then in turns
// of their salts and clients, then as they came. Turns are those of start-time fair queueing
// (Goyal, Vin and Cheng, 1996), where a sequence costs the tokens that it runs at
// most: the next sequence of a turn begins where its last one would end, or where the
// one that got a place last began.
type queue struct {
	most    int         // sequences with a place in steps
	active  []*sequence // those, in order
	waiting []*sequence // the others, in order
	now     float64     // where the one that got a place last began
	ends    map[turn]float64
	waits   map[turn]int // sequences that wait
	arrived uint64
}

// A turn is what sequences share that are served one after another.
type turn struct{ salt, client string }

func (s *sequence) turn() turn { return turn{s.run.Salt, s.run.Client} }

func newQueue(most int) queue {
	return queue{most: most, ends: map[turn]float64{}, waits: map[turn]int{}}
}

// enter has s wait for its turn.
func (q *queue) enter(s *sequence) {
	turn := s.turn()
	q.arrived++
	s.number, s.start = q.arrived, max(q.now, q.ends[turn])
	q.ends[turn] = s.start + float64(s.run.total())
	q.wait(s)
}

func (q *queue) wait(s *sequence) {
	s.active = false
	q.waits[s.turn()]++
	q.waiting = insert(q.waiting, s)
}

// insert puts s where its turn is.
func insert(all []*sequence, s *sequence) []*sequence {
	at, _ := slices.BinarySearchFunc(all, s, (*sequence).before)
	return slices.Insert(all, at, s)
}

// remove takes s out of all.
func remove(all []*sequence, s *sequence) []*sequence {
	at, found := slices.BinarySearchFunc(all, s, (*sequence).before)
	if !found {
		return all
	}
	return slices.Delete(all, at, at+1)
}

// leave ends s.
func (q *queue) leave(s *sequence) {
	if s.active {
		s.active = false
		q.active = remove(q.active, s)
	} else {
		q.waiting = remove(q.waiting, s)
		q.stopWaiting(s)
	}
}

// stopWaiting says that one less of s's turn waits.
func (q *queue) stopWaiting(s *sequence) {
	own := s.turn()
	if q.waits[own]--; q.waits[own] == 0 {
		delete(q.waits, own)
	}
	if len(q.waits) > 0 && len(q.ends) < 2*len(q.waits)+64 {
		return
	}
	// Forget turns that are over; with nobody waiting, whoever comes next begins now.
	for turn, end := range q.ends {
		if len(q.waits) == 0 {
			q.now = max(q.now, end)
		}
		if end <= q.now {
			delete(q.ends, turn)
		}
	}
	if len(q.waits) == 0 {
		clear(q.ends)
	}
}

// admit gives places to those whose turn it is and whose callers are ready for more.
// Where there is none, one that has waited for its caller in so many steps gives up
// its own, or the last if its priority is lower, which give is told. It says
// whether somebody has none.
func (q *queue) admit(patience int, give func(*sequence)) (lack bool) {
	for at := 0; at < len(q.waiting); {
		s := q.waiting[at]
		if s.under > 0 || s.ahead.Load() > 0 {
			at++
			continue
		}
		if len(q.active) == q.most {
			k := slices.IndexFunc(q.active, func(s *sequence) bool { return s.stalls(patience) })
			if last := len(q.active) - 1; k < 0 && q.active[last].run.Priority < s.run.Priority {
				k = last
			}
			if k < 0 {
				return true
			}
			gone := q.active[k]
			give(gone)
			q.active = slices.Delete(q.active, k, k+1)
			q.waiting = slices.Delete(q.waiting, at, at+1)
			q.wait(gone)
		} else {
			q.waiting = slices.Delete(q.waiting, at, at+1)
		}
		q.active = insert(q.active, s)
		s.active = true
		q.now = max(q.now, s.start)
		q.stopWaiting(s)
		at = 0
	}
	return false
}
