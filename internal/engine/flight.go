package engine

import (
	"time"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// A flight is a step with what it reads. The scheduler has it until it is done,
// callers as long as they look at what lies in it; then its memory serves another
// one. The engine's mutex guards it.
type flight struct {
	number uint64 // of the steps submitted, from 1
	batch  plan.Batch
	from   []int32 // batch.From, where that is not nil
	axes   []int32 // batch.Axes, likewise
	parts  []part  // by sequence of the batch
	saves  []save

	restored []restored // for sequences that have no part of it

	begun  time.Time
	prompt int // tokens of chunks
	moved  int // bytes that are saved and restored
	step   plan.Step
	users  int

	capture time.Duration // of submitting it
	failure error         // its tokens mean nothing

	masks  []int32             // of rows, while it is under way
	fills  []fill              // before it begins, or chooses
	late   []lateMask          // of rows, before it chooses
	adjust []sample.Adjustment // of rows
}

// A part is what a step does for one sequence.
type part struct {
	sequence *sequence
	places   int   // how often the sequence was placed then
	start    int   // position of its first token
	end      int   // and after its last
	known    int   // tokens of the sequence that were known
	first    int32 // its first token in the batch
	row      int   // the first of its rows
	rows     int
	chooses  bool // the last of its rows chooses a token
	void     bool // the token was chosen without its mask
}

// A save is a page of the host's that a step fills.
type save struct {
	node  *node
	group int
}

// newFlight is an empty one. The caller holds e.mu.
func (e *Engine) newFlight() *flight {
	last := len(e.spare) - 1
	if last < 0 {
		f := &flight{batch: plan.Batch{Tables: make([]plan.PageTable, len(e.program.Groups))}}
		if w := e.config.Watch; w != nil {
			f.batch.Timed, f.batch.Spans = w.Timed, w.Spans
		}
		f.clear()
		return f
	}
	f := e.spare[last]
	e.spare = e.spare[:last]
	return f
}

// clear empties f and keeps its room.
func (f *flight) clear() {
	b := &f.batch
	clear(f.parts)
	clear(f.saves)
	clear(f.fills)
	clear(b.Rows)
	clear(b.States)
	b.Trace, b.Late, f.failure = false, false, nil
	f.late = f.late[:0]
	b.Axes, f.axes = nil, f.axes[:0]
	f.moved = 0
	f.prompt, f.from, f.parts, f.saves, f.masks, f.fills, f.adjust = 0, f.from[:0], f.parts[:0], f.saves[:0], f.masks[:0], f.fills[:0], f.adjust[:0]
	b.Tokens, b.From, b.Positions, b.Lengths, b.Rows, b.States = b.Tokens[:0], nil, b.Positions[:0], b.Lengths[:0], b.Rows[:0], b.States[:0]
	b.Start = append(b.Start[:0], 0)
	for g := range b.Tables {
		b.Tables[g].Reset()
	}
}

// drop says that one of its users needs f no longer. The caller holds e.mu.
func (e *Engine) drop(f *flight) {
	if f.users--; f.users == 0 {
		f.step.Release()
		e.keep(f)
	}
}

// keep has f for another step.
func (e *Engine) keep(f *flight) {
	f.step = nil
	f.clear()
	e.spare = append(e.spare, f)
}

// add puts the next n tokens of s, with so many outputs of its prompt, into f. Their
// pages are there.
func (e *Engine) add(f *flight, s *sequence, n, outputs int) {
	b := &f.batch
	first := int32(len(b.Tokens))
	p := part{sequence: s, places: s.places, start: s.sent, end: s.sent + n, known: max(len(s.tokens)-1, s.prompt()), first: first, row: len(b.Rows)}
	from := int32(-1)
	if s.sent == len(s.tokens) {
		from = s.row // of the step before
		b.Tokens = append(b.Tokens, 0)
	} else {
		b.Tokens = append(b.Tokens, s.tokens[s.sent:s.sent+n]...)
	}
	p.chooses = s.run.Tokens > 0 && p.end >= len(s.tokens)
	for range outputs {
		o := s.run.Outputs[s.given]
		s.given++
		b.Rows = append(b.Rows, plan.Row{Token: first + o.Token - int32(s.sent), Want: o.Want})
	}
	if p.chooses {
		b.Rows = append(b.Rows, e.choosing(f, s, first+int32(n-1), p.end-s.prompt()))
	}
	p.rows = len(b.Rows) - p.row
	for i := range n {
		f.from = append(f.from, from)
		b.Positions = append(b.Positions, int32(s.sent+i))
	}
	if e.program.Axes[0] > 0 {
		for i := range n {
			axis := int32(0)
			if at := s.sent + i; at < len(s.run.Types) {
				axis = s.run.Types[at]
			}
			f.axes = append(f.axes, axis, 0)
		}
		b.Axes = f.axes
	}
	if b.From != nil || from >= 0 {
		b.From = f.from
	}
	b.Start = append(b.Start, int32(len(b.Tokens)))
	b.Lengths = append(b.Lengths, int32(s.prompt()))
	for g := range s.tables {
		s.tables[g].add(&b.Tables[g])
	}
	if n > 1 {
		f.prompt += n
	}
	if s.traced {
		b.Trace = true
	}
	f.parts = append(f.parts, p)
	s.sent += n
	s.under++
	s.ahead.Add(int32(p.rows))
	s.step, s.row = f.number, int32(len(b.Rows)-1)
	e.publish(s, min(s.sent, len(s.tokens)), f.number)
	if s.began.IsZero() {
		e.measures.began(s, time.Now())
	}
}

// choosing is the row that chooses token number n after the prompt of s. Steps that
// nobody waits for any longer still read what it has.
func (e *Engine) choosing(f *flight, s *sequence, token int32, n int) plan.Row {
	r := plan.Row{Token: token, Want: s.run.Want | plan.WantToken, Sampling: s.run.Sampling}
	r.Sampling.Choice += uint32(s.choice)
	if s.constraint != nil {
		r.Mask = e.maskLater(f)
	} else if m := s.run.allowed(n); m != nil {
		r.Mask = e.useMask(f, m)
	}
	if len(s.adjust) > 0 {
		at := len(f.adjust)
		f.adjust = append(f.adjust, s.adjust...)
		r.Adjustments = f.adjust[at:len(f.adjust):len(f.adjust)]
	}
	return r
}
