package engine

import (
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// deliver sends the results of a part to its caller.
func (e *Engine) deliver(f *flight, p *part, res *plan.Result, now time.Time) {
	s := p.sequence
	if s.placed && s.places == p.places {
		s.done = p.end
		e.publish(s, s.done, f.number)
	}
	if s.traced {
		s.spent(res.Layers)
	}
	last := p.row + p.rows - 1
	for i := p.row; i <= last; i++ {
		if i == last && p.chooses && (p.void || p.end < len(s.tokens)) {
			s.ahead.Add(-1) // the token is known already, or a later step samples it
			continue
		}
		got := result{Result: Result{
			Choice: s.choice, Stats: s.run.stats, Token: res.Tokens[i], Logits: res.Logits[i], Hidden: res.Hidden[i], LogProbability: res.LogProbabilities[i],
		}}
		if got.Logits != nil || got.Hidden != nil {
			f.users++
			got.flight = f
		}
		if got.Chosen = i == last && p.chooses; got.Chosen {
			got.Index = s.chosen()
			got.Final, got.Stopped = s.choose(got.Token)
			if s.traced {
				got.Trace, s.trace = s.trace, nil
			}
			e.measures.chose(s, now)
		} else {
			got.Index = p.start + int(f.batch.Rows[i].Token-p.first)
			got.end = s.run.Tokens == 0 && p.end == s.run.total() && i == last
		}
		s.run.results <- got
		switch {
		case got.Final:
			e.complete(s, got.Stopped)
		case got.Chosen && s.constraint != nil:
			e.constrainSoon(s)
		}
	}
	if s.run.Tokens == 0 && p.end == s.run.total() {
		if p.rows == 0 {
			s.run.results <- result{none: true}
		}
		e.stop(s.run, EndedByLength)
	}
}
