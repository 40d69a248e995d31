package realizar

import "time"

// An Event is a piece of an answer. The last one of each answer has Finish; nothing
// of that answer comes after it, and nothing at all after an error.
type Event struct {
	// Choice is the number of the answer, from 0: see [Generation.Choices].
	Choice int
	// Text is what the answer goes on with: whole characters, special tokens
	// left out. It may be empty, and it may lag behind Tokens while it could be
	// the beginning of a stop string.
	Text string
	// Reasoning is what the thought before the answer goes on with, where the model's
	// chat template shows how thoughts are written.
	Reasoning string
	// ToolCalls are parts of calls of tools, in order.
	ToolCalls []ToolCallPart
	// Tokens are the ids chosen since the answer's event before, an end token
	// included.
	Tokens []int32
	// LogProbs are those of Tokens, where the request wants them.
	LogProbs []TokenLogProb
	// LayerTimes are, for each of Tokens, the time by layer of the steps since the
	// answer's token before, where the request wants them: first what belongs to no
	// layer, such as the embedding, the head and the choice of the token, then each layer.
	// Of the answer's first token they are all steps that read the prompt for it, added
	// up. A step that other requests have a part in counts as a whole.
	LayerTimes [][]time.Duration
	// PromptLogProbs are those of the prompt's tokens but the first, before which
	// there is nothing, where the request wants them. They come before the answers, in
	// an event of their own.
	PromptLogProbs []TokenLogProb
	// Finish is nil but in an answer's last event.
	Finish *Finish
}

// A ToolCallPart is what a call of a tool goes on with.
type ToolCallPart struct {
	Call int // of the answer, from 0
	// ID and Name are in the first part of a call.
	ID, Name string
	// Arguments follow those of the parts before, and are a JSON object together.
	Arguments string
	// Broken says that the call is none: what the model wrote of it is text. Only a call
	// that was not held to a schema can be.
	Broken bool
}

// Finish says how an answer ended.
type Finish struct {
	Reason     FinishReason
	StopString string // of Generation.Stop, for FinishStop
	Usage      Usage
	Timings    Timings
}

// A FinishReason says why an answer ended.
type FinishReason string

// The reasons.
const (
	FinishStop   FinishReason = "stop"       // an end token, a stop token or a stop string
	FinishLength FinishReason = "length"     // MaxTokens, MaxTime, or the context is full
	FinishCalls  FinishReason = "tool_calls" // as FinishStop, after calls of tools
)

// Usage counts tokens.
type Usage struct {
	PromptTokens     int
	CachedTokens     int // of the prompt, whose states the cache still held: they were not computed again
	CompletionTokens int // chosen ones, an end token included
	ReasoningTokens  int // of these, those of a thought
}

// Timings are measured on the caller's side of the engine.
type Timings struct {
	Queue   time.Duration // until the request's first step
	Prefill time.Duration // from there to the first token
	Decode  time.Duration // from there to the last token
	// Detokenize is what the answer's text took, the search for stop strings included,
	// beside the engine's work.
	Detokenize time.Duration
}

// PrefillRate is tokens of the prompt a second, without cached ones; 0 where there
// was none.
func (f *Finish) PrefillRate() float64 {
	return rate(f.Usage.PromptTokens-f.Usage.CachedTokens, f.Timings.Prefill)
}

// DecodeRate is tokens a second after the first; 0 where there was none.
func (f *Finish) DecodeRate() float64 { return rate(f.Usage.CompletionTokens-1, f.Timings.Decode) }

func rate(n int, d time.Duration) float64 {
	if n <= 0 || d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}
