package sample

import (
	"fmt"
	"math"
)

// Params are one request's wishes. The zero Params is greedy. The filters are
// applied in the order of the fields, each to what the one before it left, and
// every filter leaves at least one token; package sample's comment defines
// them exactly.
type Params struct {
	// Temperature divides the logits: below 1 the likely tokens become likelier,
	// above 1 less so. 0 is greedy: the largest logit, and the lowest id among
	// equals; nothing else in Params matters then.
	Temperature float32
	// TopK keeps the k likeliest tokens. 0 keeps all.
	TopK int
	// TopP keeps the fewest likeliest tokens whose probabilities add up to at
	// least this (nucleus sampling; Holtzman et al., "The Curious Case of Neural
	// Text Degeneration", 2020). 0 and 1 keep all.
	TopP float32
	// MinP keeps the tokens at least this many times as probable as the likeliest
	// one (Nguyen et al., "Turning Up the Heat", 2024). 0 keeps all.
	MinP float32
	// Seed and Choice select the stream of random numbers. Choice tells apart
	// the several answers of one request.
	Seed   uint64
	Choice uint32
}

// Validate reports the first field that is outside its range, as an error that
// wraps [ErrParams] and names the field, its value and the range. A nil p is
// valid and means the zero Params.
func (p *Params) Validate() error {
	if p == nil {
		return nil
	}
	// The comparisons are written so that NaN fails them.
	if !(p.Temperature >= 0 && p.Temperature <= math.MaxFloat32) {
		return fmt.Errorf("sample: Temperature is %v: %w: want a finite number that is at least 0 (0 is greedy)", p.Temperature, ErrParams)
	}
	if p.TopK < 0 {
		return fmt.Errorf("sample: TopK is %d: %w: want at least 0 (0 keeps all tokens)", p.TopK, ErrParams)
	}
	if !(p.TopP >= 0 && p.TopP <= 1) {
		return fmt.Errorf("sample: TopP is %v: %w: want 0 to 1 (0 and 1 keep all tokens)", p.TopP, ErrParams)
	}
	if !(p.MinP >= 0 && p.MinP <= 1) {
		return fmt.Errorf("sample: MinP is %v: %w: want 0 to 1 (0 keeps all tokens)", p.MinP, ErrParams)
	}
	return nil
}
