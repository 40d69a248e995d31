package sample

import (
	"fmt"
	"math"
)

// Params are one request's sampling parameters. The zero Params is greedy. The penalties and then
// the filters apply in the order of the fields, each to the result of the one before it. Every
// filter leaves at least one token. The package comment defines them exactly.
type Params struct {
	// Repetition divides the positive logits of tokens that are in the prompt or
	// were chosen, and multiplies their negative ones (Keskar et al., "CTRL", 2019).
	// 0 and 1 change nothing.
	Repetition float32
	// Frequency is subtracted from a token's logit once for each time that the token was chosen,
	// Presence once if it was chosen at all, as in OpenAI's API. 0 changes nothing.
	Frequency, Presence float32
	// Temperature divides the logits. Below 1 the likely tokens become likelier, above 1 less
	// likely. 0 is greedy: it chooses the largest logit, the lowest id among equals, and ignores
	// the following fields.
	Temperature float32
	// TopK keeps the k likeliest tokens. 0 keeps all.
	TopK int
	// Typical keeps the fewest tokens whose probabilities add up to at least this, beginning with
	// those whose information is nearest to its expected value (Meister et al., "Locally Typical
	// Sampling", 2023). 0 and 1 keep all.
	Typical float32
	// TopP keeps the fewest tokens whose probabilities add up to at least this, likeliest first
	// (nucleus sampling; Holtzman et al., "The Curious Case of Neural Text Degeneration", 2020). 0
	// and 1 keep all.
	TopP float32
	// MinP keeps the tokens at least this many times as probable as the likeliest
	// one (Nguyen et al., "Turning Up the Heat", 2024). 0 keeps all.
	MinP float32
	// Seed and Choice select the stream of random numbers. Choice tells apart
	// the several answers of one request.
	Seed   uint64
	Choice uint32
}

// Repeats reports whether the repetition penalty is on, which needs the tokens of the prompt.
func (p *Params) Repeats() bool { return p.Repetition != 0 && p.Repetition != 1 }

// Penalizes reports whether any penalty is on, which needs the tokens chosen so far.
func (p *Params) Penalizes() bool { return p.Repeats() || p.Frequency != 0 || p.Presence != 0 }

// The ranges of penalties are far wider than useful: OpenAI's penalties end at 2 and logits rarely
// reach 100, so that the largest penalties forbid a token or force it. A value beyond them is
// probably a wrong unit or sign.
const (
	leastRepetition = 0.01
	mostRepetition  = 100
	mostPenalty     = 100
)

// Validate reports the first field that is outside its range, as an error that
// wraps [ErrParams] and names the field, its value and the range. A nil p is
// valid and means the zero Params.
func (p *Params) Validate() error {
	if p == nil {
		return nil
	}
	// NaN fails these comparisons.
	if !(p.Repetition == 0 || p.Repetition >= leastRepetition && p.Repetition <= mostRepetition) {
		return fmt.Errorf("sample: Repetition is %v: %w: want %v to %v, or 0 (0 and 1 change nothing)", p.Repetition, ErrParams, leastRepetition, mostRepetition)
	}
	if !(p.Frequency >= -mostPenalty && p.Frequency <= mostPenalty) {
		return fmt.Errorf("sample: Frequency is %v: %w: want %v to %v (0 changes nothing)", p.Frequency, ErrParams, -mostPenalty, mostPenalty)
	}
	if !(p.Presence >= -mostPenalty && p.Presence <= mostPenalty) {
		return fmt.Errorf("sample: Presence is %v: %w: want %v to %v (0 changes nothing)", p.Presence, ErrParams, -mostPenalty, mostPenalty)
	}
	if !(p.Temperature >= 0 && p.Temperature <= math.MaxFloat32) {
		return fmt.Errorf("sample: Temperature is %v: %w: want a finite number that is at least 0 (0 is greedy)", p.Temperature, ErrParams)
	}
	if p.TopK < 0 {
		return fmt.Errorf("sample: TopK is %d: %w: want at least 0 (0 keeps all tokens)", p.TopK, ErrParams)
	}
	if !(p.Typical >= 0 && p.Typical <= 1) {
		return fmt.Errorf("sample: Typical is %v: %w: want 0 to 1 (0 and 1 keep all tokens)", p.Typical, ErrParams)
	}
	if !(p.TopP >= 0 && p.TopP <= 1) {
		return fmt.Errorf("sample: TopP is %v: %w: want 0 to 1 (0 and 1 keep all tokens)", p.TopP, ErrParams)
	}
	if !(p.MinP >= 0 && p.MinP <= 1) {
		return fmt.Errorf("sample: MinP is %v: %w: want 0 to 1 (0 keeps all tokens)", p.MinP, ErrParams)
	}
	return nil
}
