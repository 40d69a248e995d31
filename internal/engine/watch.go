package engine

import (
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// A Watch is who is told what every step took.
type Watch struct {
	Timed, Spans bool // of every batch, see [plan.Batch]

	// Step is called on the engine's own goroutine, for one step at a time and in order,
	// before the callers of [Engine.Run] have what the step gave. The engine waits for it.
	// Steps that failed as a whole are left out.
	Step func(*StepReport)
}

// A StepReport is what a step was, and what it took. It and its spans are the
// engine's again when [Watch.Step] returns.
type StepReport struct {
	Number uint64 // of the steps submitted, from 1
	Seqs   int
	Tokens int
	Prompt int // of Tokens, those of chunks of prompts
	Rows   int // with an output or a token that is chosen
	Chosen int // of Rows, those that chose a token

	Submitted time.Time     // handed to the executable
	Begun     time.Time     // the same, or when the step before was done, whichever is later
	Done      time.Time     // known to be done
	Capture   time.Duration // of Submit: see [plan.Setup]

	Times plan.Times  // where wanted
	Spans []plan.Span // likewise
}

// A watching is what the scheduler keeps for a [Watch].
type watching struct {
	report StepReport
	done   time.Time // of the step before
}

// tell tells the watch, if there is one, of a step that was waited for.
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
		if f.parts[i].chooses {
			r.Chosen++
		}
	}
	r.Times, r.Spans = res.Times, res.Spans
	w.Step(r)
	r.Spans = nil
}

// Setup is what making the executable ready has taken, up to the step that was
// submitted last.
func (e *Engine) Setup() plan.Setup {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.setup
}
