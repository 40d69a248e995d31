package engine

import (
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// A Watch observes every step.
type Watch struct {
	Timed, Spans bool // of every batch, see [plan.Batch]

	// Step is called on the scheduler's goroutine, for one step at a time and in order, before the
	// callers of [Engine.Run] get the step's results. The engine waits for it. Steps that failed as
	// a whole are left out.
	Step func(*StepReport)
}

// A StepReport describes a step and its times. It and its spans are valid until [Watch.Step]
// returns.
type StepReport struct {
	Number uint64 // counts the steps submitted, from 1
	Seqs   int
	Tokens int
	Prompt int // prompt tokens in chunks, included in Tokens
	Rows   int // with an output or a sampled token
	Chosen int // rows that sample a token, included in Rows
	Drafts int // drafted tokens, included in Tokens
	Right  int // drafted tokens that were right, included in Drafts

	Submitted time.Time     // passed to the executable
	Begun     time.Time     // Submitted, or when the previous step was done, whichever is later
	Done      time.Time     // when it was known to be done
	Capture   time.Duration // time of Submit that went into capture, see [plan.Setup]

	Times plan.Times  // if wanted
	Spans []plan.Span // if wanted
}

// A watching is the scheduler's state for a [Watch].
type watching struct {
	report StepReport
	done   time.Time // when the previous step was done
}

// tell passes a completed step to the watch, if there is one.
func (e *Engine) tell(f *flight, res *plan.Result, err error) {
	w := e.config.Watch
	if w == nil {
		return
	}
	now := time.Now()
	r := &e.watching.report
	*r = StepReport{
		Number: f.number, Seqs: len(f.parts), Tokens: len(f.batch.Tokens), Prompt: f.prompt, Rows: len(f.batch.Rows),
		Submitted: f.begun, Begun: f.begun, Done: now, Capture: f.capture,
	}
	if e.watching.done.After(r.Begun) {
		r.Begun = e.watching.done
	}
	if e.watching.done = now; err != nil {
		return
	}
	for i := range f.parts {
		if p := &f.parts[i]; p.chooses {
			r.Chosen += 1 + p.drafted
			r.Drafts += p.drafted
			r.Right += p.right
		}
	}
	r.Times, r.Spans = res.Times, res.Spans
	w.Step(r)
	r.Spans = nil
}

// Setup returns the time that making the executable ready has taken, up to the last submitted step.
func (e *Engine) Setup() plan.Setup {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.setup
}
