package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// Speculative decoding (Leviathan et al., "Fast Inference from Transformers via Speculative
// Decoding", 2023). A step runs, after the last known token of a sequence, a draft: tokens that are
// likely to follow. Each row samples the token after its own, and a drafted token is right exactly
// if it equals the token that the row before it sampled. A sampled token is a function of logits,
// seed and position, and the bits of a row do not depend on other rows, so the answer has the same
// tokens with drafts and without. The positions of wrong tokens are overwritten by the next step.

// A Proposer proposes drafts for one answer. The scheduler calls it with the engine locked, so it
// must not take long: what takes time is for [Drafts.Prepare].
type Proposer interface {
	// Propose returns at most n tokens that are likely to follow tokens, and a measure of what
	// speaks for the first of them: 0 or more. Each further token has one more than the one before
	// it. tokens begin with those of the last call. The draft is valid until the next call.
	Propose(tokens []int32, n int) (draft []int32, evidence int)
	// End is called once, with the tokens of the answer and its prompt.
	End(tokens []int32)
}

// MostDraft is the most tokens of a draft.
const MostDraft = 16

// draftRoom is the most drafted tokens in a step, of all sequences.
const draftRoom = 32

// odds are the measured chances, by evidence, that a drafted token is right if those before it are.
type odds [evidences]float64

const (
	evidences  = 24       // the last class is for all above
	firstOdds  = 0.5      // before anything is known
	ownOdds    = 1. / 8   // weight of an outcome in the odds of its sequence
	allOdds    = 1. / 64  // weight of an outcome in the odds with which sequences begin
	regainOdds = 1. / 512 // weight of firstOdds if a draft does not pay, so that it is tried again
)

func newOdds() (o odds) {
	for i := range o {
		o[i] = firstOdds
	}
	return o
}

func (o *odds) of(evidence int) *float64 { return &o[min(evidence, evidences-1)] }

// learn adds an outcome.
func (o *odds) learn(evidence int, right bool, weight float64) {
	now := 0.
	if right {
		now = 1
	}
	at := o.of(evidence)
	*at += (now - *at) * weight
}

// A draft is what one sequence needs for drafts.
type draft struct {
	proposer Proposer // nil: none
	odds     odds
	tokens   []int32 // of the step being made, or in flight
	evidence int     // of the first of them
	ready    int     // tokens of the sequence when it was prepared last
	later    int     // tokens of the sequence before which it is not prepared again
	flying   bool    // tokens are in flight
	flights  int     // drafts so far
	at       int     // position of the first of them
	checked  int     // how many of them can be right; -1: masks are not known yet, see lookAhead
	skip     bool    // the next step has no draft, because the last one failed
}

// inFlight returns how many drafted tokens of s are in flight.
func (s *sequence) inFlight() int {
	if !s.draft.flying {
		return 0
	}
	return len(s.draft.tokens)
}

// Drafts say how an engine drafts. The zero Drafts are none.
type Drafts struct {
	// New makes the proposer of an answer to r, which has the number choice, on the goroutine that
	// calls [Engine.Run].
	New func(r *Request, choice int) Proposer
	// Prepare, if not nil, gets ready what the proposers of several answers are to propose next, in
	// one go. A proposer that is not ready proposes nothing. The time that Prepare takes counts when
	// the engine decides whether drafts pay. The engine is not locked, and no step runs meanwhile.
	Prepare func(asks []Ask)
	// Head makes the program's head draft, see [plan.Head]. There is then no New and no Prepare.
	Head bool
	// Tokens is the most tokens of a draft; 0 means [MostDraft]. A draft has as many as pay, by the
	// measured time of steps and by how often drafted tokens were right.
	Tokens int
	// Always makes drafts as long as possible.
	Always bool
}

// An Ask is what a proposer is to propose.
type Ask struct {
	Proposer Proposer
	Tokens   []int32 // as in [Proposer.Propose]
	N        int     // likewise
}

// any reports whether there are drafts.
func (d Drafts) any() bool { return d.New != nil || d.Head }

// prepares reports whether drafts are prepared between steps.
func (d Drafts) prepares() bool { return d.Prepare != nil || d.Head }

// proposer returns the proposer of an answer to r.
func (d Drafts) proposer(r *Request, choice int) Proposer {
	if d.Head {
		return &predicted{}
	}
	return d.New(r, choice)
}

// most returns the most tokens of a draft.
func (d Drafts) most() int {
	if !d.any() {
		return 0
	}
	return min(cmp.Or(d.Tokens, MostDraft), MostDraft)
}

// drafted returns the most drafted tokens in a step.
func (c Config) drafted(p *plan.Program) int {
	if p.Whole {
		return 0
	}
	return min(c.Parallel*c.Drafts.most(), draftRoom)
}

// A bet is the expected work and result of a step that decodes.
type bet struct {
	rows    int     // sequences
	drafted int     // tokens
	right   float64 // of drafted, as expected
}

// propose sets the draft of s for a step that runs the next n tokens of s, and adds it to b.
func (e *Engine) propose(s *sequence, n int, b *bet) {
	d := &s.draft
	d.tokens = d.tokens[:0]
	if d.proposer == nil || n < 1 || n > pageTokens || n != len(s.tokens)-s.sent || s.chosen() == 0 {
		return
	}
	if d.skip {
		d.skip = false
		return
	}
	most := e.mostOf(s, s.sent+n, e.drafts-b.drafted)
	if most == 0 {
		return
	}
	tokens, evidence := d.proposer.Propose(s.tokens, most)
	if len(tokens) == 0 || e.lacking(s, s.sent+n+len(tokens)) >= 0 {
		return
	}
	k := len(tokens)
	if e.config.Drafts.prepares() {
		b.drafted += k // depth has found that it pays
	} else {
		k = e.pays(s, evidence, 0, k, b)
	}
	d.tokens, d.evidence = append(d.tokens, tokens[:k]...), evidence
}

// mostOf returns the most tokens of a draft after position end. The step has room for that many.
func (e *Engine) mostOf(s *sequence, end, room int) int {
	ahead := tokensAhead
	if s.run.wide() {
		ahead = widesAhead
	}
	n := min(e.config.Drafts.most(), room, s.run.total()-end, ahead-int(s.ahead.Load())-1)
	if s.run.Drafts != 0 {
		n = min(n, s.run.Drafts)
	}
	if s.constraint != nil {
		if _, ok := s.constraint.Constraint.(Foresight); !ok {
			return 0
		}
	}
	for g, group := range e.program.Groups {
		switch {
		case group.Kind == plan.PerSequence && group.Every == 0 && end/pageTokens > s.sent/pageTokens:
			return 0 // the step completes a page, which others may read while s runs its tokens again
		case s.tables[g].passing && end/group.Chunk > s.sent/group.Chunk && e.writesAlways():
			return 0 // the step releases the pages of a chunk of which s may run tokens again
		case s.tables[g].passing: // and its pages are released when s goes on to the next chunk
			n = min(n, group.Chunk-1-end%group.Chunk)
		}
	}
	return max(n, 0)
}

// least is by how much a longer draft must pay.
const least = 0.01

// pays returns how many of the n drafted tokens of s go into a step: with that many it has the most
// tokens in its time. It adds them to b. The first skip tokens are in flight; the draft is for what
// follows them. Without the time of a step without drafts none pays, so that the step measures it.
func (e *Engine) pays(s *sequence, evidence, skip, n int, b *bet) int {
	if !e.config.Drafts.Always && !e.pace.measured(b.rows) {
		return 0
	}
	rate := func(right float64, drafted int) float64 {
		return (float64(b.rows) + right) / e.pace.drafting(b.rows, drafted)
	}
	best, most := 0, rate(b.right, b.drafted)
	chance, right, kept := 1., b.right, b.right
	for i := range n {
		chance *= *s.draft.odds.of(evidence + i)
		if i < skip {
			continue
		}
		right += chance
		k := i + 1 - skip
		if now := rate(right, b.drafted+k); e.config.Drafts.Always || now > most*(1+least) {
			best, most, kept = k, now, right
		}
	}
	if best == 0 && n > skip {
		at := s.draft.odds.of(evidence + skip)
		*at += max(0, firstOdds-*at) * regainOdds
		e.pace.forgetDrafts(b.rows)
	}
	b.drafted, b.right = b.drafted+best, kept
	return best
}

// expects reports whether the next step waits for those in flight, because drafts after their
// tokens are likely to gain more than it costs to have the device idle between steps, or are always
// made.
func (e *Engine) expects() bool {
	switch {
	case e.drafts == 0:
		return false
	case e.config.Drafts.prepares():
		n, right := e.depth()
		return e.config.Drafts.Always && n > 0 || right*idleCost > float64(e.queue.decoding())
	}
	b := bet{rows: e.queue.decoding()}
	for _, s := range e.queue.active {
		d := &s.draft
		switch {
		case d.flying && s.placed:
			return true
		case d.proposer == nil || !s.placed || s.under == 0 || s.chosen() == 0 || len(s.tokens) != s.sent:
			continue
		}
		if most := e.mostOf(s, s.sent+1, e.drafts-b.drafted); most > 0 {
			tokens, evidence := d.proposer.Propose(s.tokens, most+1)
			e.pays(s, evidence, 1, len(tokens), &b)
		}
	}
	return e.config.Drafts.Always && b.drafted > 0 || b.right*idleCost > float64(b.rows)
}

// preparedLater is after how many tokens a proposer is prepared again that had nothing to propose.
const preparedLater = 8

// depth returns how many tokens it pays to prepare for each sequence, and how many of all of them
// are expected to be right. It sets e.asks to the sequences.
func (e *Engine) depth() (n int, right float64) {
	e.asks, e.asked = e.asks[:0], e.asked[:0]
	rows := e.queue.decoding()
	if !e.config.Drafts.Always && !e.pace.measured(rows) {
		return 0, 0
	}
	gains, most := 0., 0
	for _, s := range e.queue.active {
		d := &s.draft
		if d.proposer == nil || d.skip || d.flying || !s.placed || s.chosen() == 0 || len(s.tokens) < d.later || len(s.tokens)-s.sent > 1 || len(e.asks) == e.drafts {
			continue
		}
		if k := e.mostOf(s, s.sent+1, e.drafts); k > 0 {
			e.asks, e.asked = append(e.asks, Ask{d.proposer, s.tokens, k}), append(e.asked, s)
			most = max(most, k)
		}
	}
	best, drafted := float64(rows)/e.pace.drafting(rows, 0), 0
	for i := range most {
		for k, s := range e.asked {
			if i < e.asks[k].N && drafted < e.drafts {
				chance := 1.
				for j := range i + 1 {
					chance *= *s.draft.odds.of(j)
				}
				gains += chance
				drafted++
			}
		}
		rate := (float64(rows) + gains) / (e.pace.drafting(rows, drafted) + e.pace.preparing(len(e.asks), i+1))
		if e.config.Drafts.Always || rate > best*(1+least) {
			best, n, right = rate, i+1, gains
		}
	}
	for i := range e.asks {
		e.asks[i].N = min(e.asks[i].N, n)
	}
	if n == 0 {
		e.regain(rows)
	}
	return n, right
}

// regain makes drafts that do not pay seem better, so that they are tried again: for sequences whose
// proposers are nearly ready, and for one of trialOf others.
func (e *Engine) regain(rows int) {
	e.pace.forgetDrafts(rows)
	for _, s := range e.asked {
		if d := &s.draft; e.config.Drafts.Head || len(s.tokens)-d.ready <= nearTokens || s.number%trialOf == 0 {
			at := d.odds.of(0)
			*at += max(0, firstOdds-*at) * regainOdds
		}
	}
}

const trialOf = 16

// prepare prepares proposers if that pays. No step is in flight. It releases e.mu meanwhile.
func (e *Engine) prepare() {
	if !e.config.Drafts.prepares() || e.drafts == 0 {
		return
	}
	n, _ := e.depth()
	if n == 0 {
		return
	}
	begun := time.Now()
	if e.config.Drafts.Head {
		e.predict()
	} else {
		e.mu.Unlock()
		e.config.Drafts.Prepare(e.asks)
		e.mu.Lock()
	}
	took := time.Since(begun)
	e.measures.Preparing += took
	ready := 0
	for i, s := range e.asked {
		if a := &e.asks[i]; s.over {
			continue
		} else if draft, _ := a.Proposer.Propose(a.Tokens, a.N); len(draft) > 0 {
			s.draft.ready = len(a.Tokens)
			ready++
		} else {
			s.draft.later = len(a.Tokens) + preparedLater
		}
	}
	if ready > 0 {
		e.pace.prepared(ready, n, took.Seconds())
	}
	clear(e.asks)
	clear(e.asked)
}

// idleCost is the reciprocal of the share of a step for which the device may idle before the next.
const idleCost = 16

// fly records that a step runs the draft of s, whose first token is at position at.
func (e *Engine) fly(s *sequence, at int) {
	d := &s.draft
	d.flying, d.at, d.checked = true, at, len(d.tokens)
	d.flights++
	if s.constraint != nil {
		if d.checked = -1; s.constraint.ready {
			e.lookAheadSoon(s)
		}
	}
}

// verify finds out how many of the drafted tokens of f, which is done, are right.
func (e *Engine) verify(f *flight, res *plan.Result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range f.parts {
		if p := &f.parts[i]; p.drafted > 0 && !p.void && !p.sequence.over {
			end := p.row + p.rows
			p.right = p.sequence.right(p, res.Tokens[end-p.drafted-1:end])
		}
	}
}

// right returns how many of the drafted tokens of p are right. sampled are the tokens of its rows
// that sample.
func (s *sequence) right(p *part, sampled []int32) int {
	at := p.end - p.drafted
	n := 0
	for n < min(p.drafted, s.draft.checked) {
		token := sampled[n]
		if at+n < len(s.tokens) { // forced meanwhile
			token = s.tokens[at+n]
		}
		if s.draft.tokens[n] != token {
			break
		}
		n++
	}
	return n
}

// landed records that p, which has a draft, is done.
func (e *Engine) landed(s *sequence, p *part) {
	d, right := &s.draft, p.right
	e.measures.Drafts++
	e.measures.DraftedTokens += uint64(p.drafted)
	e.measures.AcceptedTokens += uint64(right)
	for i := range min(right+1, p.drafted) {
		if i < right {
			e.measures.AcceptedAt[i]++
		}
		d.odds.learn(d.evidence+i, i < right, ownOdds)
		e.odds.learn(d.evidence+i, i < right, allOdds)
	}
}

// reach records that s has done the positions of p but those of wrong drafted tokens. A state per
// sequence that every step writes cannot drop these; s then runs all tokens of p again, and those
// that it has sampled.
func (e *Engine) reach(s *sequence, p *part) {
	if s.done = p.end; p.right == p.drafted {
		return
	}
	s.done -= p.drafted - p.right
	if e.writesAlways() {
		s.done = p.start
	}
	s.sent = s.done
	e.forgetStates(s)
}

// writesAlways reports whether a group has states that every step writes.
func (e *Engine) writesAlways() bool { return slices.ContainsFunc(e.program.Groups, writtenAlways) }

func writtenAlways(g plan.Group) bool { return g.Kind == plan.PerSequence && g.Every == 0 }

// forgetStates releases the states of s after positions that it has not done.
func (e *Engine) forgetStates(s *sequence) {
	for g := range s.tables {
		t := &s.tables[g]
		for last := len(t.after) - 1; last >= 0 && t.after[last] > t.group.Taken(s.done); last-- {
			e.pools[g].let(t.pages[last], 0)
			t.pages, t.after = t.pages[:last], t.after[:last]
		}
	}
}

// retry preempts the sequence of a part with a draft, which failed, and reports whether it did. The
// failure may be due to a wrong token, so s runs again without a draft.
func (e *Engine) retry(p *part) bool {
	s := p.sequence
	if p.drafted == 0 || s.over {
		return false
	}
	p.void, s.draft.skip = true, true
	e.giveUp(s)
	return true
}

// Foresight is a [Constraint] that allows drafts.
type Foresight interface {
	Constraint
	// Ahead sets masks[i], which is zero, to the mask for the token after draft[:i+1], as Next would
	// if it were called after each of these tokens. It changes no later result. It returns for how
	// many of the drafted tokens it did. It ends before a token that may not follow, or after which
	// Next forces tokens.
	Ahead(draft []int32, force bool, masks [][]uint32) (n int, err error)
}

// lookAhead sets the masks of the rows of the draft in flight, once Next has returned. The caller
// holds e.mu, which lookAhead releases while it asks. Meanwhile the step may end without its masks,
// and another fly with another draft, whose masks lookAhead sets then.
func (e *Engine) lookAhead(s *sequence) {
	for d := &s.draft; d.flying && !s.over && d.checked < 0; {
		flight := d.flights
		if n := e.maskDraft(s); flight == d.flights {
			d.checked = n
		}
	}
}

// maskDraft returns how many tokens of the draft in flight can be right, and sets the masks of their
// rows. The caller holds e.mu, which maskDraft releases while it asks.
func (e *Engine) maskDraft(s *sequence) (n int) {
	c, d := s.constraint, &s.draft
	known := len(s.tokens) - d.at // forced since the step was made
	for n < min(known, len(d.tokens)) && d.tokens[n] == s.tokens[d.at+n] {
		n++
	}
	if n < known {
		return n
	}
	rest := slices.Clone(d.tokens[known:])
	for len(c.ahead) < len(rest) {
		c.ahead = append(c.ahead, make([]uint32, len(c.mask)))
	}
	masks, index := c.ahead[:len(rest)], s.chosen()
	e.mu.Unlock()
	defer e.mu.Lock()
	n = e.foresee(s, rest, masks)
	for i := range n {
		if m := s.run.allowed(index + 1 + i); m != nil {
			for j := range masks[i] {
				masks[i][j] &= m.Words[j]
			}
		}
	}
	return known + n
}

// foresee calls Ahead. The caller does not hold e.mu. An error or a panic is one of the draft alone.
func (e *Engine) foresee(s *sequence, draft []int32, masks [][]uint32) (n int) {
	defer func() {
		if recover() != nil {
			n = 0
		}
	}()
	for _, m := range masks {
		clear(m)
	}
	n, err := s.constraint.Constraint.(Foresight).Ahead(draft, s.run.forces(), masks)
	if err != nil {
		return 0
	}
	return n
}

// lookAheadSoon runs lookAhead on another goroutine, unless one is about to. The caller holds e.mu.
func (e *Engine) lookAheadSoon(s *sequence) {
	c := s.constraint
	if c.busy {
		return
	}
	c.busy = true
	go func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.lookAhead(s)
		c.busy = false
		e.masked.Broadcast()
	}()
}

// maskOf returns the mask of row i of those that sample, or one that allows all tokens if no token
// of the row is kept.
func (e *Engine) maskOf(s *sequence, i int) []uint32 {
	if !s.draft.flying {
		return s.constraint.mask
	}
	known := len(s.tokens) - s.draft.at
	switch {
	case i < known || i > s.draft.checked:
		return e.anything()
	case i == known:
		return s.constraint.mask
	}
	return s.constraint.ahead[i-known-1]
}
