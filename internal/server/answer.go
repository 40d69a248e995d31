package server

import (
	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/budget"
)

// A Delta is what an answer goes on with: an event of the model in no dialect. It is the
// writer's until the next one.
type Delta struct {
	Prompt int // the number of its prompt
	Index  int // of its answer: those of the first prompt, then those of the next

	// Text, Reasoning and ToolCalls are the parts of what an answer says. All that the
	// model writes is Text: it is not parsed.
	Text      string
	Reasoning string
	ToolCalls []chat.ToolCall

	// LogProbs are those of the tokens of the answer, where they are asked for, without
	// that of a token that ended it.
	LogProbs []realizar.TokenLogProb
	// PromptLogProbs are those of the prompt, where they are asked for, in a Delta of
	// their own before those of the prompt's answers. A prompt of one token has none.
	PromptLogProbs []realizar.TokenLogProb
	// Finish says how the answer ended; nil but in its last Delta.
	Finish *realizar.Finish
}

// An Answer is all that has come of one: the sum of its Deltas.
type Answer struct {
	Text, Reasoning []byte
	ToolCalls       []chat.ToolCall
	LogProbs        []realizar.TokenLogProb
	Finish          *realizar.Finish // nil before its end
}

// add adds what the answer goes on with.
func (a *Answer) add(d *Delta) {
	a.Text = append(a.Text, d.Text...)
	a.Reasoning = append(a.Reasoning, d.Reasoning...)
	a.ToolCalls = append(a.ToolCalls, d.ToolCalls...)
	a.LogProbs = append(a.LogProbs, d.LogProbs...)
	if d.Finish != nil {
		a.Finish = d.Finish
	}
}

// A Result is what came of a request.
type Result struct {
	// Answers are by [Delta.Index], PromptLogProbs by [Delta.Prompt]. A stream has had
	// them as Deltas: both are nil.
	Answers        []Answer
	PromptLogProbs [][]realizar.TokenLogProb
	// Usage counts the tokens of prompts once, however many answers share them.
	Usage   realizar.Usage
	Timings *Timings // nil where the request asks for none
}

// A collector turns the events of a request into the answers to it.
type collector struct {
	memory  *budget.Account // of answers that are kept
	writer  Writer
	stream  bool
	choices int // of each prompt
	watch   *stopwatch
	delta   Delta
	result  Result
	longest realizar.Timings // of the answers, each by itself
}

// newCollector makes the collector of a request of so many prompts with so many answers each.
func newCollector(x *Exchange, w Writer, prompts, choices int) *collector {
	c := &collector{memory: x.memory, writer: w, stream: x.stream != nil, choices: choices, watch: x.watch, result: Result{Timings: x.watch.report()}}
	if !c.stream {
		c.result.Answers = make([]Answer, prompts*choices)
		c.result.PromptLogProbs = make([][]realizar.TokenLogProb, prompts)
	}
	return c
}

// take takes an event of the prompt of that number.
func (c *collector) take(prompt int, e *realizar.Event) error {
	d := &c.delta
	*d = Delta{
		Prompt: prompt, Index: prompt*c.choices + e.Choice, Text: e.Text,
		LogProbs: e.LogProbs, PromptLogProbs: e.PromptLogProbs, Finish: e.Finish,
	}
	c.watch.saw(d.Index, e)
	if f := e.Finish; f != nil {
		c.count(e.Choice, f)
		if f.Reason == realizar.FinishStop && f.StopString == "" && len(d.LogProbs) > 0 {
			d.LogProbs = d.LogProbs[:len(d.LogProbs)-1]
		}
	}
	switch {
	case c.stream:
		return c.writer.Delta(d)
	case d.PromptLogProbs != nil:
		c.result.PromptLogProbs[prompt] = d.PromptLogProbs
	default:
		if err := c.memory.Reserve(d.bytes()); err != nil {
			return err
		}
		c.result.Answers[d.Index].add(d)
	}
	return nil
}

// bytes is the memory that an answer takes for d, which grows by half more than it needs.
func (d *Delta) bytes() int64 {
	n := 2 * int64(len(d.Text)+len(d.Reasoning))
	for i := range d.LogProbs {
		n += d.LogProbs[i].Bytes()
	}
	return n
}

// count counts an answer that ended.
func (c *collector) count(choice int, f *realizar.Finish) {
	u, t := &c.result.Usage, &c.longest
	if choice == 0 {
		u.PromptTokens += f.Usage.PromptTokens
		u.CachedTokens += f.Usage.CachedTokens
	}
	u.CompletionTokens += f.Usage.CompletionTokens
	t.Queue, t.Prefill, t.Decode = max(t.Queue, f.Timings.Queue), max(t.Prefill, f.Timings.Prefill), max(t.Decode, f.Timings.Decode)
}
