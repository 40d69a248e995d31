package engine

import "slices"

// A queue holds the order in which sequences are served: by priority, then in turns of salts and
// clients, then by arrival. Turns follow start-time fair queueing (Goyal, Vin and Cheng, 1996),
// where a sequence costs the most tokens that it may run. The next sequence of a turn starts where
// its last one would end, or where the last placed sequence started, whichever is later. A free
// place goes to the turn with the fewest places.
type queue struct {
	most    int         // sequences with a place in steps
	active  []*sequence // sequences with a place, in order
	waiting []*sequence // the others, in order
	now     float64     // start of the sequence that got a place last
	shares  map[turn]*share
	lacking int // number of turns with waiting sequences
	arrived uint64
}

// A turn identifies sequences that are served one after another.
type turn struct{ salt, client string }

// A share is what a turn uses.
type share struct {
	end    float64 // where its last sequence would end
	places int
	waits  int // waiting sequences
}

func (s *sequence) turn() turn { return turn{s.run.Salt, s.run.Client} }

func newQueue(most int) queue { return queue{most: most, shares: map[turn]*share{}} }

// enter puts s into the queue.
func (q *queue) enter(s *sequence) {
	turn := s.turn()
	if s.share = q.shares[turn]; s.share == nil {
		s.share = &share{}
		q.shares[turn] = s.share
	}
	q.arrived++
	s.number, s.start = q.arrived, max(q.now, s.share.end)
	s.share.end = s.start + float64(s.run.total())
	q.wait(s)
}

func (q *queue) wait(s *sequence) {
	s.active = false
	if s.share.waits++; s.share.waits == 1 {
		q.lacking++
	}
	q.waiting = insert(q.waiting, s)
}

// insert puts s into all in order.
func insert(all []*sequence, s *sequence) []*sequence {
	at, _ := slices.BinarySearchFunc(all, s, (*sequence).before)
	return slices.Insert(all, at, s)
}

// remove removes s from all.
func remove(all []*sequence, s *sequence) []*sequence {
	at, found := slices.BinarySearchFunc(all, s, (*sequence).before)
	if !found {
		return all
	}
	return slices.Delete(all, at, at+1)
}

// leave removes s, which has ended.
func (q *queue) leave(s *sequence) {
	if s.active {
		s.active = false
		s.share.places--
		q.active = remove(q.active, s)
	} else {
		q.waiting = remove(q.waiting, s)
		q.stopWaiting(s)
	}
}

// stopWaiting records that s no longer waits, and forgets unused turns if there are many.
func (q *queue) stopWaiting(s *sequence) {
	if s.share.waits--; s.share.waits == 0 {
		q.lacking--
	}
	if q.lacking > 0 && len(q.shares) < 2*(q.lacking+q.most)+64 {
		return
	}
	// Forget turns that are over. If no sequence waits, the next one starts now.
	if q.lacking == 0 {
		for _, a := range q.shares {
			q.now = max(q.now, a.end)
		}
	}
	for turn, a := range q.shares {
		if a.end <= q.now && a.places+a.waits == 0 {
			delete(q.shares, turn)
		}
	}
}

// admit gives places to the next sequences whose callers are ready for more. If no place is free,
// another sequence may lose its own; admit calls give with it. It reports whether a ready sequence
// has no place.
func (q *queue) admit(patience int, give func(*sequence)) (lack bool) {
	for {
		at := q.next()
		if at < 0 {
			return false
		}
		s := q.waiting[at]
		q.waiting = slices.Delete(q.waiting, at, at+1)
		if len(q.active) == q.most {
			k := q.gives(s, patience)
			if k < 0 {
				q.waiting = slices.Insert(q.waiting, at, s)
				return true
			}
			gone := q.active[k]
			give(gone)
			gone.share.places--
			q.active = slices.Delete(q.active, k, k+1)
			q.wait(gone)
		}
		q.active = insert(q.active, s)
		s.active, s.from = true, s.far
		s.share.places++
		q.now = max(q.now, s.start)
		q.stopWaiting(s)
	}
}

// decoding returns how many sequences have finished their prompts and sample tokens.
func (q *queue) decoding() (n int) {
	for _, s := range q.active {
		if s.placed && s.run.Tokens > 0 && len(s.tokens)-s.sent <= 1 && !s.rests() {
			n++
		}
	}
	return n
}

// next returns the index of the waiting sequence that gets the next place: among the highest
// priority, the first of the turn with the fewest places. It returns -1 if none is ready.
func (q *queue) next() int {
	best := -1
	for i, s := range q.waiting {
		if s.under > 0 || s.ahead.Load() > 0 || s.rests() {
			continue
		}
		switch {
		case best < 0:
			best = i
		case s.run.Priority < q.waiting[best].run.Priority:
			return best
		case s.share.places < q.waiting[best].share.places:
			best = i
		}
		if q.lacking == 1 || q.waiting[best].share.places == 0 {
			return best
		}
	}
	return best
}

// An admitted sequence runs at least a page of tokens, and an eighth of what it may have to run
// again, before it loses its place to another turn.
const ranOf = 8

// gives returns the index of the sequence that loses its place to s: one that has waited for its
// caller for patience steps; the last one, if its priority is lower; or, of the turn that has the
// most places, and at least two more than that of s, the last sequence that has run for long
// enough. So places even out and do not move back and forth. It returns -1 if there is none.
func (q *queue) gives(s *sequence, patience int) int {
	last := len(q.active) - 1
	if k := slices.IndexFunc(q.active, func(o *sequence) bool { return o.stalls(patience) }); k >= 0 {
		return k
	}
	if q.active[last].run.Priority < s.run.Priority {
		return last
	}
	found, most := -1, s.share.places+1
	for k := last; k >= 0; k-- {
		o := q.active[k]
		if o.share.places > most && o.run.Priority <= s.run.Priority && o.far-o.from >= max(pageTokens, len(o.tokens)/ranOf) {
			found, most = k, o.share.places
		}
	}
	return found
}
