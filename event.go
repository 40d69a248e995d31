package realizar

import "time"

// An Event is the next piece of an answer. The last event of each answer has Finish. No event
// follows an error.
type Event struct {
	// Choice is the number of the answer, from 0: see [Generation.Choices].
	Choice int
	// Text continues the answer's text. It has whole characters and no special tokens. It may be
	// empty. Text that could be the beginning of a stop string is held back, so it may come in a
	// later event than its Tokens.
	Text string
	// Reasoning continues the model's reasoning before the answer. It is empty if the model's chat
	// template does not show how reasoning is marked; the reasoning is then part of Text.
	Reasoning string
	// ToolCalls continue the answer's tool calls, in order.
	ToolCalls []ToolCallPart
	// Tokens are the ids of the tokens generated since the answer's previous event, including an
	// end token.
	Tokens []int32
	// LogProbs are the log-probabilities of Tokens: see [Generation.LogProbs].
	LogProbs []TokenLogProb
	// LayerTimes has, for each sampled token of Tokens, the times by layer of the steps since the
	// previous one: see [Generation.LayerTimes]. Element 0 is the time outside of layers
	// (embedding, head and sampling), element 1+i that of layer i. For the first token these are
	// the sums over all prefill steps. A step that is shared with other requests counts in full.
	LayerTimes [][]time.Duration
	// PromptLogProbs are the log-probabilities of the prompt's tokens except the first: see
	// [Generation.PromptLogProbs]. They come in an event of their own, before all answers.
	PromptLogProbs []TokenLogProb
	// Finish says how the answer ended. It is nil except in the answer's last event.
	Finish *Finish
}

// A ToolCallPart is the next piece of a tool call.
type ToolCallPart struct {
	Call int // number of the call in the answer, from 0
	// ID and Name are set in the first part of a call.
	ID, Name string
	// Arguments continue the call's arguments, which together are a JSON object.
	Arguments string
	// Broken reports that the call is malformed. The caller should discard it; the model's output
	// for the call is in the Text of the answer. Only a call that was not constrained to a schema
	// can be malformed.
	Broken bool
}

// A Finish says how an answer ended.
type Finish struct {
	Reason     FinishReason
	StopString string // the string of Generation.Stop that ended the answer, if any
	Usage      Usage
	Timings    Timings
}

// A FinishReason says why an answer ended.
type FinishReason string

// The reasons why an answer ends.
const (
	FinishStop   FinishReason = "stop"       // an end token, a stop token or a stop string
	FinishLength FinishReason = "length"     // MaxTokens, MaxTime, or the context is full
	FinishCalls  FinishReason = "tool_calls" // as FinishStop, in an answer with tool calls
)

// Usage counts the tokens of an answer and its prompt.
type Usage struct {
	PromptTokens     int
	CachedTokens     int // prompt tokens found in the KV cache and not computed again
	CompletionTokens int // generated tokens, including an end token
	ReasoningTokens  int // the part of CompletionTokens that is reasoning
}

// Timings are the times that an answer took.
type Timings struct {
	Queue   time.Duration // from the request to its first step
	Prefill time.Duration // from the first step to the answer's first token
	Decode  time.Duration // from the first token to the last
	// Detokenize is the time spent on the answer's text, including the search for stop strings. It
	// is spent outside of the model's steps.
	Detokenize time.Duration
}

// PrefillRate returns the prompt tokens computed per second, without cached tokens. It is 0 if none
// were computed.
func (f *Finish) PrefillRate() float64 {
	return rate(f.Usage.PromptTokens-f.Usage.CachedTokens, f.Timings.Prefill)
}

// DecodeRate returns the tokens generated per second after the first. It is 0 if there were none.
func (f *Finish) DecodeRate() float64 { return rate(f.Usage.CompletionTokens-1, f.Timings.Decode) }

func rate(n int, d time.Duration) float64 {
	if n <= 0 || d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}
