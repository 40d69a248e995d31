package engine

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/realizar/realizar/internal/sample"
)

// Results that a sequence may have that its caller has not taken in, those under
// way included.
const (
	tokensAhead = 32 // chosen
	widesAhead  = 3  // chosen, which hold on to the memory of their steps
	rowsAhead   = stepsAhead * chunkRows
)

// A sequence is one answer to a request, and what it has read so far. The engine's
// mutex guards what changes.
type sequence struct {
	run    *run
	choice int
	class  int  // of rotary frequencies
	whole  bool // it is in one step, all of it
	stops  bool // its chunks end at checkpoints

	tokens []int32 // the prompt, and what was chosen after it
	adjust []sample.Adjustment

	constraint *constraint // or nil

	traced bool    // the time by layer of its steps is wanted
	placed bool    // it has pages, of the positions from which it goes on
	sent   int     // positions in pages or in steps under way
	done   int     // positions in pages
	given  int     // outputs submitted
	tables []table // by group
	path   []*node // the histories of its first pages, the empty one first
	places int     // how often it was placed

	ahead  atomic.Int32 // results that the caller has not taken in, those under way included
	under  int          // steps under way
	missed int          // steps, one after the other, for want of its caller
	step   uint64       // submitted last
	row    int32        // of that step, which chooses the next token

	over bool
	left bool // the caller's own: wants no more of it

	// Its place in the queue.
	active bool
	share  *share
	far    int     // positions that were ever in steps
	from   int     // of these, before it got its place
	number uint64  // of arrivals
	start  float64 // of its salt's turn, see [queue]

	began, first, last time.Time // of the first step, the first token and the last

	quota int // of a step's tokens of prompts

	behind *sequence // that reads for it, or nil
	until  int       // the position up to which it does
	sought bool      // one to stay behind, since it has come
	warmed int       // steps that restored pages for it before it was placed

	trace *Trace // of its steps since a token was chosen; nil: none
}

// before orders sequences: those that others make room for come first.
func (s *sequence) before(o *sequence) int {
	return cmp.Or(cmp.Compare(o.run.Priority, s.run.Priority), cmp.Compare(s.start, o.start), cmp.Compare(s.number, o.number))
}

// rest is the number of prompt tokens that s has left to run. A single token that chooses the next
// one does not count.
func (s *sequence) rest() int {
	n := len(s.tokens) - s.sent
	if n == 1 && s.run.Tokens > 0 {
		return 0
	}
	return n
}

// prompt is how many of s's tokens were not chosen.
func (s *sequence) prompt() int { return len(s.run.Prompt) }

// chosen is how many were.
func (s *sequence) chosen() int { return len(s.tokens) - s.prompt() }

// outputs are those of s's prompt.
func (s *sequence) outputs() []Output {
	if s.choice > 0 {
		return nil
	}
	return s.run.Outputs
}

// reusable is how many of s's first tokens need not be run where their states are
// there: those before the last one known and before the first that has an output.
func (s *sequence) reusable() int {
	n := len(s.tokens) - 1
	if o := s.outputs(); s.given < len(o) {
		n = min(n, int(o[s.given].Token))
	}
	return n
}

// wants is how many tokens of s go into the step after the one submitted last, and
// how many outputs they have, where there is room for so many tokens and outputs of
// prompts. One token that chooses the next needs no such room.
func (s *sequence) wants(tokens, room int, last uint64) (n, outputs int) {
	known := len(s.tokens) - s.sent
	chooses := s.run.Tokens > 0
	switch {
	case s.sent == s.run.total():
		return 0, 0
	case known == 0:
		// The step under way chooses the token to go on with.
		if s.step != last || !s.mayChoose() || s.constraint != nil && s.constraint.slow > 0 {
			return 0, 0
		}
		return 1, 0
	case known == 1 && chooses:
		if !s.mayChoose() {
			return 0, 0
		}
		return 1, 0
	}
	if s.whole {
		if outputs = len(s.outputs()); known > tokens || outputs > room {
			return 0, 0
		}
		return known, outputs
	}
	n = min(known, tokens)
	if s.stops {
		n = min(n, checkpointTokens-s.sent%checkpointTokens)
	}
	if n == known && chooses && !s.mayChoose() {
		n--
	}
	room = min(room, rowsAhead-int(s.ahead.Load()))
	given := s.outputs()
	for _, o := range given[min(s.given, len(given)):] {
		at := int(o.Token) - s.sent
		if at >= n {
			break
		}
		if outputs == room {
			return at, outputs
		}
		outputs++
	}
	return n, outputs
}

// mayChoose says that the token after the last one known can be chosen now.
func (s *sequence) mayChoose() bool {
	most := tokensAhead
	if s.run.wide() {
		most = widesAhead
	}
	return int(s.ahead.Load()) < most && (s.constraint == nil || s.constraint.mayWait())
}

// waitsForCaller says that s is left out of steps until its caller has taken in what
// it has.
func (s *sequence) waitsForCaller() bool {
	switch {
	case s.over:
		return false
	case !s.placed:
		return s.ahead.Load() > 0
	}
	if o := s.outputs(); s.given < len(o) && int(o[s.given].Token) == s.sent && int(s.ahead.Load()) >= rowsAhead {
		return true
	}
	return len(s.tokens)-s.sent <= 1 && s.sent < s.run.total() && !s.mayChoose()
}

// stalls says that s has waited for its caller in so many steps.
func (s *sequence) stalls(patience int) bool { return s.missed >= patience && s.waitsForCaller() }

// choose appends a token that was chosen, and says whether it ends the answer, and
// whether by itself.
func (s *sequence) choose(id int32) (final, stopped bool) {
	s.tokens = append(s.tokens, id)
	if s.constraint != nil {
		s.constraint.ready = false
	}
	n := s.chosen()
	if s.run.Sampling.Penalizes() {
		at, found := slices.BinarySearchFunc(s.adjust, id, func(a sample.Adjustment, id int32) int { return int(a.Token) - int(id) })
		if !found {
			s.adjust = slices.Insert(s.adjust, at, sample.Adjustment{Token: id})
		}
		s.adjust[at].Count++
	}
	stopped = n > s.run.MinTokens && slices.Contains(s.run.Stop, id)
	return stopped || n == s.run.Tokens, stopped
}

// spent adds a step's time by layer to that of s.
func (s *sequence) spent(layers []time.Duration) {
	if s.trace == nil {
		s.trace = &Trace{Layers: make([]time.Duration, len(layers))}
	}
	for i, d := range layers {
		s.trace.Layers[i] += d
	}
}
