package engine

import (
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// deliver sends the results of a part to its caller.
func (e *Engine) deliver(f *flight, p *part, res *plan.Result, now time.Time) {
	s := p.sequence
	s.coming -= p.rows
	end := p.row + p.rows // of its rows
	sampling := end
	if p.chooses {
		sampling -= 1 + p.drafted
	}
	at := p.end - p.drafted // position of the first token that it samples
	if p.drafted > 0 {
		if s.draft.flying = false; !p.void {
			e.landed(s, p)
		}
	}
	if s.placed && s.places == p.places {
		e.reach(s, p)
		e.publish(s, min(s.done, len(s.tokens)), f.number)
	}
	if s.traced {
		s.spent(res.Layers)
	}
	for i := p.row; i < sampling; i++ {
		got := s.result(f, res, i)
		got.Index = p.start + int(f.batch.Rows[i].Token-p.first)
		got.end = s.run.Tokens == 0 && p.end == s.run.total() && i == end-1
		s.run.results <- got
	}
	chose := false
	for i := sampling; i < end; i++ {
		if p.void || i > sampling+p.right || at+i-sampling < len(s.tokens) || s.over {
			s.ahead.Add(-1) // the token is known already, a later step samples it, or it follows a wrong one
			continue
		}
		got := s.result(f, res, i)
		got.Chosen, got.Index = true, s.chosen()
		got.Final, got.Stopped = s.choose(got.Token)
		if s.traced {
			got.Trace, s.trace = s.trace, nil
		}
		e.measures.chose(s, now)
		s.run.results <- got
		if chose = true; s.placed && s.places == p.places {
			e.publish(s, min(s.done, len(s.tokens)), f.number)
		}
		if got.Final {
			e.complete(s, got.Stopped)
		}
	}
	if s.over {
		return
	}
	if s.placed && s.places == p.places {
		e.trim(s)
	}
	if chose && s.constraint != nil {
		e.constrainSoon(s)
	}
	if s.run.Tokens == 0 && p.end == s.run.total() {
		if p.rows == 0 {
			s.run.results <- result{none: true}
		}
		e.stop(s.run, EndedByLength)
	}
}

// result returns the result of a row of f.
func (s *sequence) result(f *flight, res *plan.Result, row int) result {
	got := result{Result: Result{
		Choice: s.choice, Stats: s.run.stats, Token: res.Tokens[row], Logits: res.Logits[row], Hidden: res.Hidden[row], LogProbability: res.LogProbabilities[row],
	}}
	if got.Logits != nil || got.Hidden != nil {
		f.users++
		got.flight = f
	}
	return got
}
