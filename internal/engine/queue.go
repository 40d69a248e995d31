package engine

import "slices"

// A queue is the order in which sequences are served: by priority, then in turns
// of their salts and clients, then as they came. Turns are those of start-time fair queueing
// (Goyal, Vin and Cheng, 1996), where a sequence costs the tokens that it runs at
// most: the next sequence of a turn begins where its last one would end, or where the
// one that got a place last began. Places are given to turns that have the fewest.
type queue struct {
	most    int         // sequences with a place in steps
	active  []*sequence // those, in order
	waiting []*sequence // the others, in order
	now     float64     // where the one that got a place last began
	shares  map[turn]*share
	lacking int // turns of which sequences wait
	arrived uint64
}

// A turn is what sequences share that are served one after another.
type turn struct{ salt, client string }

// A share is what a turn has of what there is.
type share struct {
	end    float64 // where its last sequence would end
	places int
	waits  int // sequences
}

func (s *sequence) turn() turn { return turn{s.run.Salt, s.run.Client} }

func newQueue(most int) queue { return queue{most: most, shares: map[turn]*share{}} }

// enter has s wait for its turn.
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
		s.share.places--
		q.active = remove(q.active, s)
	} else {
		q.waiting = remove(q.waiting, s)
		q.stopWaiting(s)
	}
}

// stopWaiting says that one less of s's turn waits.
func (q *queue) stopWaiting(s *sequence) {
	if s.share.waits--; s.share.waits == 0 {
		q.lacking--
	}
	if q.lacking > 0 && len(q.shares) < 2*(q.lacking+q.most)+64 {
		return
	}
	// Forget turns that are over; with nobody waiting, whoever comes next begins now.
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

// admit gives places to those whose turn it is and whose callers are ready for more.
// Where there is none, another gives up its own, which give is told. It says whether
// somebody has none.
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

// decoding is how many sequences have read their prompts and choose tokens.
func (q *queue) decoding() (n int) {
	for _, s := range q.active {
		if s.placed && s.run.Tokens > 0 && len(s.tokens)-s.sent <= 1 {
			n++
		}
	}
	return n
}

// next is which of those that wait gets the next place: the first of the highest priority
// whose turn has the fewest. -1: none is ready.
func (q *queue) next() int {
	best := -1
	for i, s := range q.waiting {
		if s.under > 0 || s.ahead.Load() > 0 {
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

// A sequence that was let in gets on by a page of tokens at least, and by this part of what
// it may have to run again, before it gives its place to another turn.
const ranOf = 8

// gives is which of those that have places gives its own to s: one that has waited for its
// caller in so many steps; the last, if its priority is lower; or of the turn that has the
// most, and two more than that of s at least, the last that has run for long enough. So
// turns come to have equal shares, and no place goes back and forth. -1: none.
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
