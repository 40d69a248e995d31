package realizar

import "time"

// An Event is a piece of an answer. The last one has Finish; there is none after
// it, and none with it after an error.
type Event struct {
	// Text is what the answer goes on with: whole characters, special tokens
	// left out. It may be empty, and it may lag behind Tokens while it could be
	// the beginning of a stop string.
	Text string
	// Tokens are the ids chosen since the event before, an end token included.
	Tokens []int32
	// Finish is nil but in the last event.
	Finish *Finish
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
	FinishStop   FinishReason = "stop"   // an end token, a stop token or a stop string
	FinishLength FinishReason = "length" // MaxTokens, or the context is full
)

// Usage counts tokens.
type Usage struct {
	PromptTokens     int
	CompletionTokens int // chosen ones, an end token included
}

// Timings are measured on the caller's side of the engine.
type Timings struct {
	Queue   time.Duration // until there was room for the request
	Prefill time.Duration // from there to the first token
	Decode  time.Duration // from there to the last token
}

// PrefillRate is tokens of the prompt a second; 0 where there was none.
func (f *Finish) PrefillRate() float64 { return rate(f.Usage.PromptTokens, f.Timings.Prefill) }

// DecodeRate is tokens a second after the first; 0 where there was none.
func (f *Finish) DecodeRate() float64 { return rate(f.Usage.CompletionTokens-1, f.Timings.Decode) }

func rate(n int, d time.Duration) float64 {
	if n <= 0 || d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}
