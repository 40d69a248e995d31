package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/realizar/realizar"
)

// generationFlags say how an answer is chosen and when it ends.
type generationFlags struct {
	MaxTokens   *int     `short:"n" placeholder:"N" group:"answer" help:"End the answer after N tokens. Default: when the context is full."`
	MinTokens   int      `default:"0" placeholder:"N" group:"answer" help:"Keep the model from ending the answer before N tokens."`
	Temperature *float32 `placeholder:"T" group:"answer" help:"Below 1 likely tokens become likelier, above 1 less so; 0 always takes the likeliest."`
	TopK        *int     `placeholder:"K" group:"answer" help:"Choose among the K likeliest tokens; 0 means all."`
	TypicalP    *float32 `placeholder:"P" group:"answer" help:"Choose among the tokens that surprise about as much as is to be expected, whose probabilities add up to P; 0 means all."`
	TopP        *float32 `placeholder:"P" group:"answer" help:"Choose among the likeliest tokens whose probabilities add up to P; 0 means all."`
	MinP        *float32 `placeholder:"P" group:"answer" help:"Choose among tokens at least P times as likely as the likeliest; 0 means all."`

	RepetitionPenalty *float32 `placeholder:"R" group:"answer" help:"Above 1 tokens of the prompt and the answer become less likely; 1 changes nothing."`
	PresencePenalty   *float32 `placeholder:"R" group:"answer" help:"Above 0 tokens that the answer has already become less likely; 0 changes nothing."`
	FrequencyPenalty  *float32 `placeholder:"R" group:"answer" help:"The same, by as many times as the answer has them."`

	LogitBias map[int32]float32 `placeholder:"ID=BIAS" mapsep:"none" group:"answer" help:"Add BIAS to the logit of token ID; -inf forbids it. May be given several times."`

	Seed *uint64  `short:"s" placeholder:"N" group:"answer" help:"The same seed chooses the same tokens. Default: a random one; --verbose shows it."`
	Stop []string `placeholder:"TEXT" sep:"none" group:"answer" help:"End the answer before TEXT. May be given several times."`
}

// Validate says which value makes no sense. The parser does not see flags that
// are embedded, so that the command's own Validate calls it.
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
		return fmt.Errorf("--min-tokens=%d: --max-tokens=%d ends the answer before", f.MinTokens, *f.MaxTokens)
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

// generation is what the model recommends, or greedy, with what the flags say
// instead.
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

// idle names the flags that have no effect on g because it is greedy.
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
