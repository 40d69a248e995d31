package server

import (
	"slices"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/budget"
	"github.com/realizar/realizar/internal/kvtransfer"
)

// A Delta is one piece of an answer, in no dialect. It is valid only until the next Delta.
type Delta struct {
	Prompt int // index of the prompt
	Index  int // index of the answer: those of the first prompt first, then those of the next

	// Text, Reasoning and ToolCalls are the parts of the answer. If several are set, their order is
	// reasoning, text, calls; the text of a broken call follows the call.
	Text      string
	Reasoning string
	ToolCalls []realizar.ToolCallPart

	// LogProbs has the log probabilities of the answer's tokens, if the request asks for them. A
	// token that ended the answer has none.
	LogProbs []realizar.TokenLogProb
	// PromptLogProbs has the log probabilities of the prompt, if the request asks for them. They
	// have a Delta of their own, before the Deltas of the prompt's answers. A prompt of one token
	// has none.
	PromptLogProbs []realizar.TokenLogProb
	// Finish says how the answer ended; nil except in its last Delta.
	Finish *realizar.Finish
}

// OfOther reports whether d has reasoning or a call, and no text.
func (d *Delta) OfOther() bool { return d.Text == "" && (d.Reasoning != "" || len(d.ToolCalls) > 0) }

// An Answer is the sum of the Deltas of one answer so far.
type Answer struct {
	Text, Reasoning []byte
	ToolCalls       []ToolCall // without broken calls, once Finish is set
	LogProbs        []realizar.TokenLogProb
	Finish          *realizar.Finish // nil before the end

	textFrom, textTo int  // the range of LogProbs that belongs to Text
	inText           bool // the last Delta was text
}

// TextLogProbs returns the log probabilities of Text, without those of reasoning and calls.
func (a *Answer) TextLogProbs() []realizar.TokenLogProb {
	return a.LogProbs[a.textFrom:max(a.textFrom, a.textTo)]
}

// A ToolCall is an answer's call of a tool.
type ToolCall struct {
	ID, Name  string
	Arguments []byte // JSON, as far as it has arrived

	broken bool
}

// Add appends d to the answer.
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

// A Result is the outcome of a request.
type Result struct {
	// Answers has one element per [Delta.Index], PromptLogProbs one per [Delta.Prompt]. Both are
	// nil for a stream, which has received them as Deltas.
	Answers        []Answer
	PromptLogProbs [][]realizar.TokenLogProb
	// Usage counts the tokens of prompts once, however many answers share them.
	Usage   realizar.Usage
	Timings *Timings // nil if the request asks for none
	// Offer has the pages of the prompt, if the request asks for it and they could be held.
	Offer *kvtransfer.Offer
}

// A collector turns the events of a request into its answers.
type collector struct {
	memory  *budget.Account // charged for answers that are kept
	writer  Writer
	stream  bool
	choices int // per prompt
	watch   *stopwatch
	delta   Delta
	result  Result
	longest realizar.Timings // the maximum over the answers, for each field
}

// newCollector returns the collector of a request with the given number of prompts and of answers
// per prompt.
func newCollector(x *Exchange, w Writer, prompts, choices int) *collector {
	c := &collector{memory: x.memory, writer: w, stream: x.stream != nil, choices: choices, watch: x.watch, result: Result{Timings: x.watch.report()}}
	if !c.stream {
		c.result.Answers = make([]Answer, prompts*choices)
		c.result.PromptLogProbs = make([][]realizar.TokenLogProb, prompts)
	}
	return c
}

// take handles an event of the prompt with the given index.
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

// callBytes is the memory of a [ToolCall] in bytes, without its texts.
const callBytes = 128

// bytes returns the memory in bytes that d adds to an answer. Texts count twice, as slices grow by
// more than they need.
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

// count adds the usage and timings of an answer that ended.
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
