package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/realizar/realizar"
)

// generationFlags say how tokens are sampled and when an answer ends.
type generationFlags struct {
	MaxTokens   *int     `short:"n" placeholder:"N" group:"answer" common:"" help:"Most tokens in the answer. Default: what the context holds."`
	MinTokens   int      `default:"0" placeholder:"N" group:"answer" help:"Fewest tokens in the answer: the model cannot end it earlier."`
	Temperature *float32 `placeholder:"T" group:"answer" common:"" help:"Sampling temperature; 0 always takes the likeliest token. Default: what the model recommends, or 0."`
	TopK        *int     `placeholder:"K" group:"answer" help:"Sample from the K likeliest tokens; 0 means all."`
	TypicalP    *float32 `placeholder:"P" group:"answer" help:"Sample from the tokens whose information is closest to the entropy, up to a total probability of P (locally typical sampling); 0 means all."`
	TopP        *float32 `placeholder:"P" group:"answer" help:"Sample from the likeliest tokens, up to a total probability of P; 0 means all."`
	MinP        *float32 `placeholder:"P" group:"answer" help:"Sample from tokens at least P times as likely as the likeliest; 0 means all."`

	RepetitionPenalty *float32 `placeholder:"R" group:"answer" help:"Above 1, tokens of the prompt and the answer become less likely; 1 has no effect."`
	PresencePenalty   *float32 `placeholder:"R" group:"answer" help:"Above 0, tokens that occur in the answer become less likely; 0 has no effect."`
	FrequencyPenalty  *float32 `placeholder:"R" group:"answer" help:"As --presence-penalty, once for each occurrence."`

	LogitBias map[int32]float32 `placeholder:"ID=BIAS" mapsep:"none" group:"answer" help:"Add BIAS to the logit of token ID; -inf forbids the token. Repeatable."`

	Seed *uint64  `short:"s" placeholder:"N" group:"answer" common:"" help:"The same seed gives the same answer. Default: a random seed, which --verbose shows."`
	Stop []string `placeholder:"TEXT" sep:"none" group:"answer" common:"" help:"End the answer before TEXT. Repeatable."`
}

// Validate checks the values. The parser does not call it for embedded flags; the command's own
// Validate does.
func (f *generationFlags) Validate() error {
	if f.MaxTokens != nil && *f.MaxTokens < 0 {
		return fmt.Errorf("--max-tokens=%d: want 0 or more", *f.MaxTokens)
	}
	if f.TopK != nil && *f.TopK < 0 {
		return fmt.Errorf("--top-k=%d: want 1 or more, or 0 for all tokens", *f.TopK)
	}
	if t := f.Temperature; t != nil && !(*t >= 0 && *t <= math.MaxFloat32) {
		return fmt.Errorf("--temperature=%v: want 0 or more", *t)
	}
	if f.MinTokens < 0 {
		return fmt.Errorf("--min-tokens=%d: want 0 or more", f.MinTokens)
	}
	if f.MaxTokens != nil && f.MinTokens > *f.MaxTokens {
		return fmt.Errorf("--min-tokens=%d is more than --max-tokens=%d", f.MinTokens, *f.MaxTokens)
	}
	for name, p := range map[string]*float32{"typical-p": f.TypicalP, "top-p": f.TopP, "min-p": f.MinP} {
		if p != nil && !(*p >= 0 && *p <= 1) {
			return fmt.Errorf("--%s=%v: want 0 to 1", name, *p)
		}
	}
	if p := f.RepetitionPenalty; p != nil && *p != 0 && !(*p >= 0.01 && *p <= 100) {
		return fmt.Errorf("--repetition-penalty=%v: want 0.01 to 100, or 0 for none", *p)
	}
	for name, p := range map[string]*float32{"presence-penalty": f.PresencePenalty, "frequency-penalty": f.FrequencyPenalty} {
		if p != nil && !(*p >= -100 && *p <= 100) {
			return fmt.Errorf("--%s=%v: want -100 to 100", name, *p)
		}
	}
	for id, bias := range f.LogitBias {
		if id < 0 || !(bias <= math.MaxFloat32) {
			return fmt.Errorf("--logit-bias %d=%v: want the id of a token and a number, or -inf", id, bias)
		}
	}
	for _, s := range f.Stop {
		if s == "" {
			return fmt.Errorf("--stop: the text is empty")
		}
	}
	return nil
}

// generation returns the sampling that the model's files recommend, or greedy sampling, as changed
// by the flags.
func (f *generationFlags) generation(m *realizar.Model) realizar.Generation {
	s, _ := m.DefaultSampling()
	replace(&s.Temperature, f.Temperature)
	replace(&s.TopK, f.TopK)
	replace(&s.Typical, f.TypicalP)
	replace(&s.TopP, f.TopP)
	replace(&s.MinP, f.MinP)
	replace(&s.RepetitionPenalty, f.RepetitionPenalty)
	replace(&s.PresencePenalty, f.PresencePenalty)
	replace(&s.FrequencyPenalty, f.FrequencyPenalty)
	if s.Temperature > 0 {
		s.Seed = rand.Uint64() >> 11 // short, and exact in JSON
	}
	replace(&s.Seed, f.Seed)
	return realizar.Generation{Sampling: s, MaxTokens: f.MaxTokens, MinTokens: f.MinTokens, Stop: f.Stop, LogitBias: f.LogitBias}
}

func replace[T any](v *T, by *T) {
	if by != nil {
		*v = *by
	}
}

// idle returns the flags that have no effect because g is greedy.
func (f *generationFlags) idle(g *realizar.Generation) []string {
	if g.Temperature > 0 {
		return nil
	}
	var names []string
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"--top-k", f.TopK != nil}, {"--typical-p", f.TypicalP != nil}, {"--top-p", f.TopP != nil}, {"--min-p", f.MinP != nil}, {"--seed", f.Seed != nil},
	} {
		if flag.given {
			names = append(names, flag.name)
		}
	}
	return names
}
