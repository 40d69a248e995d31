package server

import (
	"slices"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/budget"
)

// A Delta is what an answer goes on with: an event of the model in no dialect. It is the
// writer's until the next one.
type Delta struct {
	Prompt int // the number of its prompt
	Index  int // of its answer: those of the first prompt, then those of the next

	// Text, Reasoning and ToolCalls are the parts of what an answer says. Where there are
	// several, they come in the order thought, text, calls; the text of a broken call
	// follows it.
	Text      string
	Reasoning string
	ToolCalls []realizar.ToolCallPart

	// LogProbs are those of the tokens of the answer, where they are asked for, without
	// that of a token that ended it.
	LogProbs []realizar.TokenLogProb
	// PromptLogProbs are those of the prompt, where they are asked for, in a Delta of
	// their own before those of the prompt's answers. A prompt of one token has none.
	PromptLogProbs []realizar.TokenLogProb
	// Finish says how the answer ended; nil but in its last Delta.
	Finish *realizar.Finish
}

// OfOther reports whether d is of a thought or a call, and no text.
func (d *Delta) OfOther() bool { return d.Text == "" && (d.Reasoning != "" || len(d.ToolCalls) > 0) }

// An Answer is all that has come of one: the sum of its Deltas.
type Answer struct {
	Text, Reasoning []byte
	ToolCalls       []ToolCall // without broken ones, once there is a Finish
	LogProbs        []realizar.TokenLogProb
	Finish          *realizar.Finish // nil before its end

	textFrom, textTo int  // of LogProbs, those of Text
	inText           bool // what came last was text
}

// TextLogProbs are those of the tokens of Text, between those of a thought and of calls.
func (a *Answer) TextLogProbs() []realizar.TokenLogProb {
	return a.LogProbs[a.textFrom:max(a.textFrom, a.textTo)]
}

// A ToolCall is a call of a tool by an answer.
type ToolCall struct {
	ID, Name  string
	Arguments []byte // JSON, as far as it has come

	broken bool
}

// Add adds what the answer goes on with.
func (a *Answer) Add(d *Delta) {
	a.Text = append(a.Text, d.Text...)
	a.Reasoning = append(a.Reasoning, d.Reasoning...)
	for i := range d.ToolCalls {
		a.addCall(&d.ToolCalls[i])
	}
	a.LogProbs = append(a.LogProbs, d.LogProbs...)
	switch n := len(a.LogProbs); {
	case d.OfOther():
		if a.inText = false; len(a.Text) == 0 {
			a.textFrom = n
		}
	case d.Text != "", a.inText, len(a.Text) == 0:
		a.inText, a.textTo = len(a.Text) > 0, n
	}
	if d.Finish != nil {
		a.Finish = d.Finish
		a.ToolCalls = slices.DeleteFunc(a.ToolCalls, func(c ToolCall) bool { return c.broken })
	}
}

func (a *Answer) addCall(p *realizar.ToolCallPart) {
	for len(a.ToolCalls) <= p.Call {
		a.ToolCalls = append(a.ToolCalls, ToolCall{})
	}
	c := &a.ToolCalls[p.Call]
	if p.ID != "" {
		c.ID, c.Name = p.ID, p.Name
	}
	c.Arguments = append(c.Arguments, p.Arguments...)
	c.broken = c.broken || p.Broken
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
		Prompt: prompt, Index: prompt*c.choices + e.Choice, Text: e.Text, Reasoning: e.Reasoning, ToolCalls: e.ToolCalls,
		LogProbs: e.LogProbs, PromptLogProbs: e.PromptLogProbs, Finish: e.Finish,
	}
	c.watch.saw(d.Index, e)
	if f := e.Finish; f != nil {
		c.count(e.Choice, f)
		if f.Reason != realizar.FinishLength && f.StopString == "" && len(d.LogProbs) > 0 {
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
		c.result.Answers[d.Index].Add(d)
	}
	return nil
}

// callBytes is the memory of a [ToolCall] beside its texts.
const callBytes = 128

// bytes is the memory that an answer takes for d, which grows by half more than it needs.
func (d *Delta) bytes() int64 {
	n := 2 * int64(len(d.Text)+len(d.Reasoning))
	for i := range d.ToolCalls {
		p := &d.ToolCalls[i]
		n += callBytes + 2*int64(len(p.ID)+len(p.Name)+len(p.Arguments))
	}
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
	u.ReasoningTokens += f.Usage.ReasoningTokens
	t.Queue, t.Prefill, t.Decode = max(t.Queue, f.Timings.Queue), max(t.Prefill, f.Timings.Prefill), max(t.Decode, f.Timings.Decode)
}
