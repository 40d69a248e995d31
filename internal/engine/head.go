package engine

import (
	"context"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// A program's head drafts (see [plan.Head]) between steps, when none is in flight: it runs once for
// each drafted token of the longest draft, in a step with one token of each sequence. The first is the
// last known token, at the position that the sequence runs next; the others are those that the head
// has drafted. Rows that the head writes are overwritten when the sequence runs these positions.

// A predicted is the proposer of an answer for which the head drafts.
type predicted struct {
	draft []int32
	ready int // tokens after which draft comes
}

// Propose implements [Proposer].
func (p *predicted) Propose(tokens []int32, n int) (draft []int32, evidence int) {
	if p.ready != len(tokens) {
		return nil, 0
	}
	return p.draft[:min(n, len(p.draft))], 0
}

// End implements [Proposer].
func (p *predicted) End([]int32) {}

// predict makes the head draft for e.asked. The caller holds e.mu, which predict releases while the
// head runs.
func (e *Engine) predict() {
	for i := range e.asks {
		p := e.asks[i].Proposer.(*predicted)
		p.draft, p.ready = p.draft[:0], len(e.asks[i].Tokens)
	}
	for e.predictOne() {
	}
}

// predictOne drafts one more token for each sequence that has as many as any other, and reports
// whether it did.
func (e *Engine) predictOne() bool {
	f := e.newFlight()
	f.number, f.batch.Head = e.steps+1, true
	var of []*predicted
	for i, s := range e.asked {
		a := &e.asks[i]
		p := a.Proposer.(*predicted)
		at := s.sent + len(p.draft)
		if s.over || !s.placed || len(s.tokens) != p.ready || s.sent != p.ready-1 || s.done != s.sent || len(p.draft) == a.N || !e.coverHead(f, s, at+1) {
			continue
		}
		e.addHead(f, s, p.draft)
		of = append(of, p)
	}
	if len(of) == 0 {
		e.keep(f)
		return false
	}
	e.steps++
	e.begins = f
	e.mu.Unlock()
	var step plan.Step
	var res *plan.Result
	err := e.setMasks(f)
	if err == nil {
		step, err = e.exe.Submit(&f.batch)
	}
	if err == nil {
		res, err = step.Wait(context.Background())
	}
	setup := e.exe.Setup()
	e.mu.Lock()
	e.begins, e.setup, e.done = nil, setup, f.number
	e.letMasks(f)
	more := false
	if err != nil { // a failure of drafts alone, except for pages that the step was to save
		e.lost(f, err)
		for _, fill := range f.fills {
			e.masks.forget(fill.id)
		}
	}
	for i, p := range of {
		if err == nil && (res.Err == nil || res.Err[i] == nil) {
			p.draft, more = append(p.draft, res.Tokens[i]), true
		} else {
			p.ready = 0
		}
	}
	if step != nil {
		step.Release()
	}
	e.keep(f)
	return more
}

// coverHead takes pages of the groups that the head uses for s up to position end, and reports whether
// there are any.
func (e *Engine) coverHead(f *flight, s *sequence, end int) bool {
	for g := range s.tables {
		if e.program.Uses(g, true) && s.tables[g].lacks(end) > e.pools[g].available() {
			return false
		}
	}
	for g := range s.tables {
		if t := &s.tables[g]; e.program.Uses(g, true) {
			for range t.lacks(end) {
				t.append(e.take(f, g), end)
			}
		}
	}
	return true
}

// addHead adds to f the position of s after those that it has done and a draft.
func (e *Engine) addHead(f *flight, s *sequence, draft []int32) {
	b, at, token := &f.batch, s.sent+len(draft), s.tokens[s.sent]
	if n := len(draft); n > 0 {
		token = draft[n-1]
	}
	r := plan.Row{Token: int32(len(b.Tokens)), Want: plan.WantToken, Sampling: s.run.Sampling}
	r.Sampling.Choice += uint32(s.choice)
	if m := s.run.allowed(at + 1 - s.prompt()); m != nil {
		r.Mask = e.useMask(f, m)
	}
	if r.Adjustments = slices.Clone(s.adjust); r.Sampling.Penalizes() {
		for _, id := range draft {
			r.Adjustments = count(r.Adjustments, id)
		}
	}
	b.Tokens, b.Positions = append(b.Tokens, token), append(b.Positions, int32(at))
	b.Start, b.Lengths = append(b.Start, int32(len(b.Tokens))), append(b.Lengths, int32(s.prompt()))
	b.Rows = append(b.Rows, r)
	for g := range s.tables {
		if e.program.Uses(g, true) {
			s.tables[g].add(&b.Tables[g], at, at+1)
		} else {
			b.Tables[g].Add(0)
		}
	}
}
