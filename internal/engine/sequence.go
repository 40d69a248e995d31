package engine

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/realizar/realizar/internal/sample"
)

// The most results of a sequence that its caller has not taken yet, including those in flight.
const (
	tokensAhead = 32 // sampled tokens
	widesAhead  = 3  // sampled tokens whose results hold the memory of their steps
	rowsAhead   = stepsAhead * chunkRows
)

// A sequence is one answer to a request, and its progress. The engine's mutex guards its variable
// fields.
type sequence struct {
	run    *run
	choice int
	class  int          // of rotary frequencies
	whole  bool         // runs as a whole, in one step
	checks *checkpoints // or nil, if there are none

	tokens []int32 // of the prompt and the answer
	adjust []sample.Adjustment

	constraint *constraint // or nil
	draft      draft
	following  *following // or nil

	traced bool    // the times of its steps by layer are wanted
	placed bool    // has pages
	sent   int     // positions in pages, including those in steps in flight; 0 without pages
	done   int     // positions in pages, without those in flight
	given  int     // outputs submitted
	tables []table // by group
	path   []*node // nodes of its first pages, beginning with the root
	places int     // how often it was placed
	forks  []int   // positions where it must leave checkpoints because prompts part there
	trail  int     // position of the last checkpoint that it left and that the next one makes spare; 0 if none

	ahead  atomic.Int32 // results that the caller has not taken, including those in flight
	under  int          // its steps in flight
	coming int          // results in flight
	missed int          // steps missed in a row, waiting for its caller
	step   uint64       // the last one submitted
	row    int32        // in that step, which samples the next token

	over bool
	left bool // used by the caller, which wants no more of the answer

	// Its place in the queue.
	active bool
	share  *share
	far    int     // positions that ever were in steps
	from   int     // far when it got its place
	number uint64  // of arrival
	start  float64 // in its turn, see [queue]

	began, first, last time.Time // times of the first step, the first token and the last

	quota int // prompt tokens in the step being made

	behind *sequence // the leader that s stays behind, or nil
	until  int       // position up to which the leader runs the common tokens
	sought bool      // a leader was looked for when s arrived
	warmed int       // steps that restored pages for s before it was placed

	trace *Trace // of its steps since the last sampled token, or nil
}

// before compares s and o by the order of the queue.
func (s *sequence) before(o *sequence) int {
	return cmp.Or(cmp.Compare(o.run.Priority, s.run.Priority), cmp.Compare(s.start, o.start), cmp.Compare(s.number, o.number))
}

// rest returns the number of prompt tokens that s has left to run. A single token whose row samples
// the next one does not count.
func (s *sequence) rest() int {
	if s.draft.flying {
		return 0
	}
	n := len(s.tokens) - s.sent
	if n == 1 && s.run.Tokens > 0 {
		return 0
	}
	return n
}

// prompt returns the number of prompt tokens.
func (s *sequence) prompt() int { return len(s.run.Prompt) }

// chosen returns the number of sampled and forced tokens.
func (s *sequence) chosen() int { return len(s.tokens) - s.prompt() }

// outputs returns the outputs of the prompt, which are of the first answer alone.
func (s *sequence) outputs() []Output {
	if s.choice > 0 {
		return nil
	}
	return s.run.Outputs
}

// reusable returns how many of s's first tokens need not run if they are cached: those before the
// last known token and before the first token with an output.
func (s *sequence) reusable() int {
	n := len(s.tokens) - 1
	if o := s.outputs(); s.given < len(o) {
		n = min(n, int(o[s.given].Token))
	}
	return s.settled(n)
}

// wants returns how many tokens of s go into the step after the one submitted last, and how many
// outputs they have. The step has room for the given numbers of prompt tokens and outputs of
// prompts. A single token whose row samples the next one needs no such room.
func (s *sequence) wants(tokens, room int, last uint64) (n, outputs int) {
	known := len(s.tokens) - s.sent
	chooses := s.run.Tokens > 0
	switch {
	case s.draft.flying || s.sent == s.total():
		return 0, 0
	case known == 0:
		// The step in flight samples the token to continue with.
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
	n = s.cut(min(known, tokens, s.total()-s.sent))
	if stop := s.settled(s.sent + n); stop > s.sent {
		n = stop - s.sent // its state there is held
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

// mayChoose reports whether the token after the last known one can be sampled now.
func (s *sequence) mayChoose() bool {
	most := tokensAhead
	if s.run.wide() {
		most = widesAhead
	}
	return int(s.ahead.Load()) < most && (s.constraint == nil || s.constraint.mayWait())
}

// waitsForCaller reports whether s is left out of steps until its caller has taken its results.
func (s *sequence) waitsForCaller() bool {
	switch {
	case s.over:
		return false
	case s.rests():
		return true
	case !s.placed:
		return s.ahead.Load() > 0
	}
	if o := s.outputs(); s.given < len(o) && int(o[s.given].Token) == s.sent && int(s.ahead.Load()) >= rowsAhead {
		return true
	}
	return len(s.tokens)-s.sent <= 1 && s.sent < s.total() && !s.mayChoose()
}

// stalls reports whether s has waited for its caller for patience steps.
func (s *sequence) stalls(patience int) bool { return s.missed >= patience && s.waitsForCaller() }

// choose appends a token. It reports whether the token ends the answer, and whether it does so
// because it is a stop token.
func (s *sequence) choose(id int32) (final, stopped bool) {
	s.tokens = append(s.tokens, id)
	if s.constraint != nil {
		s.constraint.ready = false
	}
	n := s.chosen()
	if s.run.Sampling.Penalizes() {
		s.adjust = count(s.adjust, id)
	}
	if s.following != nil {
		return false, false
	}
	stopped = n > s.run.MinTokens && slices.Contains(s.run.Stop, id)
	return stopped || n == s.run.Tokens, stopped
}

// spent adds a step's times by layer to those of s.
func (s *sequence) spent(layers []time.Duration) {
	if s.trace == nil {
		s.trace = &Trace{Layers: make([]time.Duration, len(layers))}
	}
	for i, d := range layers {
		s.trace.Layers[i] += d
	}
}
