package realizar

import (
	"slices"
	"strings"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/turn"
	"github.com/realizar/realizar/tokenizer"
)

// An answer is one of a task's answers.
type answer struct {
	task   *task
	choice int
	text   *tokenizer.Stream // nil if there is no tokenizer, or a reader
	reader *reader           // of a conversation's turn, or nil
	calls  []string          // ids of tool calls
	stops  stopMatcher

	unsent Event // the next event
	first  time.Time
	last   time.Time     // when the first and the last token arrived
	texts  time.Duration // spent on text
	lines  bool          // the text has a line break
	finish Finish
	ended  bool
}

// begin sets a to answer number choice of t.
func (a *answer) begin(t *task, choice int) {
	*a = answer{task: t, choice: choice, stops: stopMatcher{stops: t.settings.Stop}}
	if t.turn != nil {
		a.reader = newReader(t.turn)
	} else if t.model.tok != nil {
		a.text = t.model.tok.NewStream(true)
	}
	a.finish = Finish{Reason: FinishLength, Usage: Usage{PromptTokens: len(t.prompt)}}
}

// take adds a sampled token, and the forced tokens before it, to the answer. It sends an event and
// reports whether the answer continues.
func (a *answer) take(r *engine.Result) (more bool, err error) {
	a.last = time.Now()
	if a.first.IsZero() {
		a.first = a.last
	}
	begun := time.Now()
	stopped := false
	for _, id := range r.Forced {
		a.count(id)
		if stopped = a.push(id); stopped {
			break
		}
	}
	if !stopped {
		a.note(r)
		if stopped = r.Stopped; !stopped {
			stopped = a.push(r.Token)
		} else if a.finish.Reason = FinishStop; a.reader != nil {
			a.saw(a.reader.last(r.Token))
		}
	}
	final := r.Final || !stopped && a.late()
	if final && a.finish.StopString == "" {
		a.rest()
	}
	a.texts += time.Since(begun)
	if stopped || final {
		if a.finish.Reason == FinishStop && len(a.calls) > 0 {
			a.finish.Reason = FinishCalls
		}
		a.measure(r.Stats)
		return false, a.end()
	}
	return true, a.send()
}

// late reports whether the answer has exceeded [Generation.MaxTime].
func (a *answer) late() bool {
	most := a.task.settings.MaxTime
	return most > 0 && a.lines && a.last.Sub(a.first) >= most
}

// push adds a token's text to the next event. It reports whether a stop string ends the answer.
func (a *answer) push(id int32) (stopped bool) {
	switch {
	case a.reader != nil:
		thinks := a.reader.parser.InReasoning()
		stopped = a.saw(a.reader.push(id))
		if thinks || a.reader.parser.InReasoning() {
			a.finish.Usage.ReasoningTokens++
		}
		return stopped
	case a.text != nil:
		return a.pass(a.text.Push(id))
	}
	return false
}

// saw adds the events of a turn to the next event. It reports whether a stop string ends the
// answer.
func (a *answer) saw(events []turn.Event) (stopped bool) {
	for _, e := range events {
		switch e.Kind {
		case turn.Text:
			if a.pass(e.Text) {
				return true
			}
		case turn.Reasoning:
			a.unsent.Reasoning += e.Text
		case turn.CallBegin:
			if e.ID == "" {
				e.ID = newCallID()
			}
			a.calls = append(a.calls, e.ID)
			a.unsent.ToolCalls = append(a.unsent.ToolCalls, ToolCallPart{Call: e.Call, ID: e.ID, Name: e.Name})
		case turn.CallArguments:
			if last := len(a.unsent.ToolCalls) - 1; last >= 0 && a.unsent.ToolCalls[last].Call == e.Call {
				a.unsent.ToolCalls[last].Arguments += e.Text
			} else {
				a.unsent.ToolCalls = append(a.unsent.ToolCalls, ToolCallPart{Call: e.Call, Arguments: e.Text})
			}
		case turn.CallBroken:
			a.calls = a.calls[:len(a.calls)-1]
			a.unsent.ToolCalls = append(a.unsent.ToolCalls, ToolCallPart{Call: e.Call, Broken: true})
			if a.pass(e.Text) {
				return true
			}
		}
	}
	return false
}

// count adds a token's id to the next event.
func (a *answer) count(id int32) {
	a.finish.Usage.CompletionTokens++
	a.unsent.Tokens = append(a.unsent.Tokens, id)
}

// note adds a sampled token's id, and its times and log-probabilities if the request asks for them,
// to the next event.
func (a *answer) note(r *engine.Result) {
	a.count(r.Token)
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

// pass adds text to the next event, except an end that could begin a stop string. It reports
// whether a stop string ends the answer.
func (a *answer) pass(text string) (stopped bool) {
	out, stop := a.stops.push(text)
	a.lines = a.lines || strings.Contains(out, "\n")
	if a.unsent.Text += out; stop != "" {
		a.finish.Reason, a.finish.StopString = FinishStop, stop
	}
	return stop != ""
}

// measure sets the cached tokens and timings of the finish.
func (a *answer) measure(s engine.Stats) {
	a.finish.Usage.CachedTokens = s.Cached
	a.finish.Timings = Timings{
		Queue: s.Queue, Prefill: a.first.Sub(a.task.asked.Add(s.Queue)), Decode: a.last.Sub(a.first), Detokenize: a.texts,
	}
}

// rest adds the text that was held back to the last event.
func (a *answer) rest() {
	stopped := false
	switch {
	case a.reader != nil:
		stopped = a.saw(a.reader.end(a.finish.Reason == FinishLength))
	case a.text != nil:
		stopped = a.pass(a.text.Flush())
	}
	if !stopped {
		a.unsent.Text += a.stops.flush()
	}
}

// end sends the last event.
func (a *answer) end() error {
	a.unsent.Finish, a.ended = &a.finish, true
	return a.send()
}

// send sends the next event and begins a new one.
func (a *answer) send() error {
	e := a.unsent
	a.unsent = Event{}
	e.Choice = a.choice
	return a.task.send(e)
}
