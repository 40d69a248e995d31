package engine

import (
	"slices"
	"time"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// A flight is a step with its batch. The scheduler owns it until it is done. Callers hold it as
// long as they read results in its memory; then it is reused. The engine's mutex guards it.
type flight struct {
	number uint64 // counts the steps submitted, from 1
	batch  plan.Batch
	from   []int32 // backs batch.From if that is not nil
	axes   []int32 // backs batch.Axes, likewise
	parts  []part  // by sequence of the batch
	saves  []save

	restored []restored // for sequences that are not in the step

	begun  time.Time
	prompt int // prompt tokens, in chunks
	moved  int // bytes saved and restored
	step   plan.Step
	users  int

	capture time.Duration // time of submitting it that went into capture
	failure error         // if not nil, its tokens mean nothing

	masks  []int32             // ids used by rows, while it is in flight
	fills  []fill              // set before it begins or samples
	late   []lateMask          // of rows, set before it samples
	adjust []sample.Adjustment // of rows
}

// A part is the work of a step for one sequence.
type part struct {
	sequence *sequence
	places   int   // the sequence's places when it was added
	start    int   // position of its first token
	end      int   // position after its last token
	known    int   // tokens of the sequence that were known
	first    int32 // index of its first token in the batch
	row      int   // its first row
	rows     int
	chooses  bool // its last row samples a token, and one more before it for each drafted token
	drafted  int  // drafted tokens, its last ones
	right    int  // how many of these are right, once the step is done
	void     bool // the token was sampled without its mask
}

// A save is a page of host memory that a step fills.
type save struct {
	node  *node
	group int
}

// newFlight returns an empty flight. The caller holds e.mu.
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

// clear empties f and keeps its memory.
func (f *flight) clear() {
	b := &f.batch
	clear(f.parts)
	clear(f.saves)
	clear(f.fills)
	clear(b.Rows)
	clear(b.States)
	b.Head, b.Trace, b.Late, f.failure = false, false, false, nil
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

// drop releases one use of f. The caller holds e.mu.
func (e *Engine) drop(f *flight) {
	if f.users--; f.users == 0 {
		f.step.Release()
		e.keep(f)
	}
}

// keep clears f for reuse by another step.
func (e *Engine) keep(f *flight) {
	f.step = nil
	f.clear()
	e.spare = append(e.spare, f)
}

// add appends the next n tokens of s and its draft to f, with the given number of outputs of its
// prompt. s has the pages for them.
func (e *Engine) add(f *flight, s *sequence, n, outputs int) {
	b, draft := &f.batch, s.draft.tokens
	first := int32(len(b.Tokens))
	end := s.sent + n
	p := part{
		sequence: s, places: s.places, start: s.sent, end: end + len(draft), known: max(len(s.tokens)-1, s.prompt()), first: first, row: len(b.Rows), drafted: len(draft),
	}
	from := int32(-1)
	if s.sent == len(s.tokens) {
		from = s.row // in the previous step
		b.Tokens = append(b.Tokens, 0)
	} else {
		b.Tokens = append(b.Tokens, s.tokens[s.sent:end]...)
	}
	b.Tokens = append(b.Tokens, draft...)
	p.chooses = s.run.Tokens > 0 && end >= len(s.tokens)
	for range outputs {
		o := s.run.Outputs[s.given]
		s.given++
		b.Rows = append(b.Rows, plan.Row{Token: first + o.Token - int32(s.sent), Want: o.Want})
	}
	if p.chooses {
		for i := range 1 + len(draft) {
			b.Rows = append(b.Rows, e.choosing(f, s, first+int32(n-1+i), end-s.prompt(), i))
		}
	}
	p.rows = len(b.Rows) - p.row
	for i := range n + len(draft) {
		f.from = append(f.from, from)
		b.Positions = append(b.Positions, int32(s.sent+i))
	}
	if e.program.Axes[0] > 0 {
		for i := range n + len(draft) {
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
		s.tables[g].add(&b.Tables[g], s.sent, p.end)
	}
	if n > 1 {
		f.prompt += n
	}
	if s.traced {
		b.Trace = true
	}
	f.parts = append(f.parts, p)
	s.sent = p.end
	s.arrive()
	s.under++
	s.ahead.Add(int32(p.rows))
	s.coming += p.rows
	s.step, s.row = f.number, int32(len(b.Rows)-1)
	if len(draft) > 0 {
		e.fly(s, end)
	}
	e.publish(s, min(s.sent, len(s.tokens)), f.number)
	if s.began.IsZero() {
		e.measures.began(s, time.Now())
	}
}

// choosing returns the row that samples token number n after the prompt of s, or after so many
// drafted tokens a later one. Its slices are not reused while f is in flight, even if the answer has
// ended.
func (e *Engine) choosing(f *flight, s *sequence, token int32, n, drafted int) plan.Row {
	r := plan.Row{Token: token, Want: s.run.Want | plan.WantToken, Sampling: s.run.Sampling}
	r.Sampling.Choice += uint32(s.choice)
	if s.constraint != nil {
		r.Mask = e.maskLater(f, drafted)
	} else if m := s.run.allowed(n + drafted); m != nil {
		r.Mask = e.useMask(f, m)
	}
	at := len(f.adjust)
	f.adjust = append(f.adjust, s.adjust...)
	if s.run.Sampling.Penalizes() {
		for _, id := range s.draft.tokens[:drafted] {
			f.adjust = append(f.adjust[:at], count(f.adjust[at:], id)...)
		}
	}
	if len(f.adjust) > at {
		r.Adjustments = f.adjust[at:len(f.adjust):len(f.adjust)]
	}
	return r
}

// count adds one occurrence of a token to all, which are in ascending order.
func count(all []sample.Adjustment, id int32) []sample.Adjustment {
	at, found := slices.BinarySearchFunc(all, id, func(a sample.Adjustment, id int32) int { return int(a.Token) - int(id) })
	if !found {
		all = slices.Insert(all, at, sample.Adjustment{Token: id})
	}
	all[at].Count++
	return all
}
