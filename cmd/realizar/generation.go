package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/realizar/realizar"
)

// generationFlags say how an answer is chosen and when it ends.
type generationFlags struct {
	MaxTokens   *int     `placeholder:"N" group:"answer" help:"End the answer after N tokens. Default: when the context is full."`
	Temperature *float32 `placeholder:"T" group:"answer" help:"Below 1 likely tokens become likelier, above 1 less so; 0 always takes the likeliest."`
	TopK        *int     `placeholder:"K" group:"answer" help:"Choose among the K likeliest tokens; 0 means all."`
	TopP        *float32 `placeholder:"P" group:"answer" help:"Choose among the likeliest tokens whose probabilities add up to P; 0 means all."`
	MinP        *float32 `placeholder:"P" group:"answer" help:"Choose among tokens at least P times as likely as the likeliest; 0 means all."`
	Seed        *uint64  `placeholder:"N" group:"answer" help:"The same seed chooses the same tokens. Default: a random one; --verbose shows it."`
	Stop        []string `placeholder:"TEXT" sep:"none" group:"answer" help:"End the answer before TEXT. May be given several times."`
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
	for name, p := range map[string]*float32{"top-p": f.TopP, "min-p": f.MinP} {
		if p != nil && !(*p >= 0 && *p <= 1) {
			return fmt.Errorf("--%s=%v: want 0 to 1", name, *p)
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
	replace(&s.TopP, f.TopP)
	replace(&s.MinP, f.MinP)
	if s.Temperature > 0 {
		s.Seed = rand.Uint64() >> 11 // short, and exact in JSON
	}
	replace(&s.Seed, f.Seed)
	return realizar.Generation{Sampling: s, MaxTokens: f.MaxTokens, Stop: f.Stop}
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
	}{{"--top-k", f.TopK != nil}, {"--top-p", f.TopP != nil}, {"--min-p", f.MinP != nil}, {"--seed", f.Seed != nil}} {
		if flag.given {
			names = append(names, flag.name)
		}
	}
	return names
}
