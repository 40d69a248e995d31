package engine

import (
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// A flight is a step with what it reads. The scheduler has it until it is done,
// callers as long as they look at what lies in it; then its memory serves another
// one. The engine's mutex guards it.
type flight struct {
	batch plan.Batch
	from  []int32 // batch.From, where that is not nil
	parts []part  // by sequence of the batch
	step  plan.Step
	users int
}

// A part is what a step does for one request.
type part struct {
	request *request
	row     int // the first of its rows
	rows    int
	index   int // of a result, less its row's token in the batch
	end     int // position after its last token
}

// newFlight is an empty one. The caller holds e.mu.
func (e *Engine) newFlight() *flight {
	last := len(e.spare) - 1
	if last < 0 {
		f := &flight{batch: plan.Batch{Tables: make([]plan.PageTable, len(e.program.Groups))}}
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
	clear(b.Rows)
	f.from, f.parts = f.from[:0], f.parts[:0]
	b.Tokens, b.From, b.Positions, b.Lengths, b.Rows = b.Tokens[:0], nil, b.Positions[:0], b.Lengths[:0], b.Rows[:0]
	b.Start = append(b.Start[:0], 0)
	for g := range b.Tables {
		t := &b.Tables[g]
		t.Pages, t.Start, t.First = t.Pages[:0], append(t.Start[:0], 0), t.First[:0]
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

// add puts r's next n tokens, of which so many are outputs, into the step that
// follows those submitted, and takes the pages that they need.
func (e *Engine) add(f *flight, r *request, n, rows int) {
	s, b := r.sequence, &f.batch
	first, start := int32(len(b.Tokens)), r.start+r.sent
	f.parts = append(f.parts, part{request: r, row: len(b.Rows), rows: rows, index: r.sent - r.first - int(first), end: start + n})
	from := int32(-1)
	if r.decoding() {
		if r.step == e.steps { // the step before this one
			from = r.row
		}
		b.Tokens = append(b.Tokens, r.token) // not read where there is a row
		f.addRow(r.next, first)
	} else {
		b.Tokens = append(b.Tokens, r.ids[r.sent:r.sent+n]...)
		for _, o := range r.outputs[r.given : r.given+rows] {
			f.addRow(o, first-int32(r.sent))
		}
		r.given += rows
	}
	for i := range n {
		f.from = append(f.from, from)
		b.Positions = append(b.Positions, int32(start+i))
	}
	if b.From != nil || from >= 0 {
		b.From = f.from
	}
	b.Start = append(b.Start, int32(len(b.Tokens)))
	b.Lengths = append(b.Lengths, int32(s.prompt))
	for g := range s.tables {
		s.tables[g].cover(e, g, s.length, start+n)
		s.tables[g].add(&b.Tables[g])
	}
	r.sent += n
	r.ahead++
	r.step, r.row = e.steps+1, int32(len(b.Rows)-1)
}

// addRow wants an output of the token that is so far behind its place in the
// request. Steps that nobody waits for any longer still read its mask.
func (f *flight) addRow(o Output, behind int32) {
	o.Token += behind
	o.Mask = slices.Clone(o.Mask)
	f.batch.Rows = append(f.batch.Rows, o)
}
