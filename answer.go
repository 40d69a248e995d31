package realizar

import (
	"slices"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/tokenizer"
)

// An answer is one of those that a task chooses.
type answer struct {
	task   *task
	choice int
	text   *tokenizer.Stream // nil without a tokenizer
	stops  stopMatcher

	unsent Event // tokens whose text is held back
	first  time.Time
	last   time.Time     // when the first and the last token were there
	texts  time.Duration // spent on text
	finish Finish
	ended  bool
}

// begin makes a the answer of that number.
func (a *answer) begin(t *task, choice int) {
	*a = answer{task: t, choice: choice, stops: stopMatcher{stops: t.settings.Stop}}
	if t.model.tok != nil {
		a.text = t.model.tok.NewStream(true)
	}
	a.finish = Finish{Reason: FinishLength, Usage: Usage{PromptTokens: len(t.prompt)}}
}

// take passes a token on and reports whether the answer goes on.
func (a *answer) take(r *engine.Result) (more bool, err error) {
	a.last = time.Now()
	if a.first.IsZero() {
		a.first = a.last
	}
	begun := time.Now()
	text, stopped := a.force(r.Forced)
	if !stopped {
		a.finish.Usage.CompletionTokens++
		a.note(r)
		if stopped = r.Stopped; stopped {
			a.finish.Reason = FinishStop
		} else if a.text != nil {
			var more string
			more, stopped = a.pass(a.text.Push(r.Token))
			text += more
		}
	}
	if r.Final && a.finish.StopString == "" {
		text += a.rest()
	}
	a.texts += time.Since(begun)
	if stopped || r.Final {
		a.measure(r.Stats)
		return false, a.end(text)
	}
	return true, a.send(text)
}

// force takes tokens that had to follow those before, up to a stop string.
func (a *answer) force(ids []int32) (text string, stopped bool) {
	for _, id := range ids {
		a.finish.Usage.CompletionTokens++
		a.unsent.Tokens = append(a.unsent.Tokens, id)
		if a.text == nil {
			continue
		}
		var more string
		more, stopped = a.pass(a.text.Push(id))
		if text += more; stopped {
			break
		}
	}
	return text, stopped
}

// note keeps a token for the next event.
func (a *answer) note(r *engine.Result) {
	a.unsent.Tokens = append(a.unsent.Tokens, r.Token)
	if r.Trace != nil {
		a.unsent.LayerTimes = append(a.unsent.LayerTimes, slices.Clone(r.Trace.Layers))
	}
	n := a.task.settings.LogProbs
	switch {
	case n == nil:
	case *n == 0:
		a.unsent.LogProbs = append(a.unsent.LogProbs, TokenLogProb{Token: r.Token, LogProb: float64(r.LogProbability)})
	default:
		a.unsent.LogProbs = append(a.unsent.LogProbs, a.task.prober.of(r.Logits, r.Token, *n))
	}
}

// pass is the part of text before a stop string and not held back for one.
func (a *answer) pass(text string) (out string, stopped bool) {
	out, stop := a.stops.push(text)
	if stop != "" {
		a.finish.Reason, a.finish.StopString = FinishStop, stop
	}
	return out, stop != ""
}

// measure fills in how the answer was served.
func (a *answer) measure(s engine.Stats) {
	a.finish.Usage.CachedTokens = s.Cached
	a.finish.Timings = Timings{
		Queue: s.Queue, Prefill: a.first.Sub(a.task.asked.Add(s.Queue)), Decode: a.last.Sub(a.first), Detokenize: a.texts,
	}
}

// rest is the text that was held back, when no token follows.
func (a *answer) rest() string {
	if a.text == nil {
		return ""
	}
	text, stopped := a.pass(a.text.Flush())
	if stopped {
		return text
	}
	return text + a.stops.flush()
}

// end sends the last event.
func (a *answer) end(text string) error {
	a.unsent.Finish, a.ended = &a.finish, true
	return a.send(text)
}

// send sends text and what was not sent before.
func (a *answer) send(text string) error {
	e := a.unsent
	a.unsent = Event{}
	e.Choice, e.Text = a.choice, text
	return a.task.send(e)
}
