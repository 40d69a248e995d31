package realizar_test

import (
	"math"
	"slices"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/sample"
)

// lastLogits returns the logits after ids.
func lastLogits(t *testing.T, m *realizar.Model, ids []int32) []float32 {
	t.Helper()
	var last []float32
	if err := m.Logits(t.Context(), ids, 0, func(_ int, logits []float32) error {
		last = logits
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return last
}

// slowAnswer returns a greedy answer of n tokens, computed by one call of Logits per token.
func slowAnswer(t *testing.T, m *realizar.Model, prompt []int32, n int, g *realizar.Generation) []int32 {
	t.Helper()
	ids := slices.Clone(prompt)
	for range n {
		logits := lastLogits(t, m, ids)
		best := -1
		for id, l := range logits {
			b := g.LogitBias[int32(id)]
			if b < -math.MaxFloat32 {
				continue
			}
			l += b
			count := 0
			for _, x := range ids[len(prompt):] {
				if int(x) == id {
					count++
				}
			}
			if r := g.RepetitionPenalty; r != 0 && slices.Contains(ids, int32(id)) {
				if l > 0 {
					l /= r
				} else {
					l *= r
				}
			}
			if count > 0 {
				l -= float32(g.FrequencyPenalty * float32(count))
				l -= g.PresencePenalty
			}
			if logits[id] = l; best < 0 || l > logits[best] {
				best = id
			}
		}
		ids = append(ids, int32(best))
	}
	return ids[len(prompt):]
}

// Biases and penalties give the tokens that slowAnswer gives with them.
func TestPenalties(t *testing.T) {
	m := open(t, realizar.Options{})
	prompt := []int32{5, 71, 9, 71, 200, 14, 30}
	none := float32(math.Inf(-1))
	plain := slowAnswer(t, m, prompt, 40, &realizar.Generation{})
	sampling := func(repetition, frequency, presence float32) realizar.Generation {
		return realizar.Generation{Sampling: realizar.Sampling{RepetitionPenalty: repetition, FrequencyPenalty: frequency, PresencePenalty: presence}}
	}
	both := sampling(1.1, 0.05, 0.02)
	both.LogitBias = map[int32]float32{plain[0]: none, 71: 0.3, 100: -0.5}
	for name, g := range map[string]realizar.Generation{
		"nothing":        {},
		"a bias":         {LogitBias: map[int32]float32{17: 0.4}},
		"forbidden":      {LogitBias: map[int32]float32{plain[0]: none, plain[1]: none}},
		"forced":         {LogitBias: map[int32]float32{3: 1000}},
		"repetition":     sampling(1.2, 0, 0),
		"less than 1":    sampling(0.5, 0, 0),
		"frequency":      sampling(0, 0.1, 0),
		"presence":       sampling(0, 0, 0.1),
		"all":            both,
		"to be repeated": sampling(0, -0.2, -0.1),
	} {
		want := slowAnswer(t, m, prompt, 40, &g)
		if name != "nothing" && slices.Equal(want, plain) {
			t.Errorf("%s changes nothing", name)
		}
		g.MaxTokens, g.IgnoreEnd = new(40), true
		got := generate(t, m, realizar.Request{PromptTokens: prompt, Generation: g}).tokens
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// Each sampling parameter reaches the sampler.
func TestSampling(t *testing.T) {
	m := open(t, realizar.Options{})
	prompt := []int32{5, 71, 9, 71, 200, 14, 30}
	base := realizar.Sampling{Temperature: 3, Seed: 4}
	var before [][]int32
	for name, change := range map[string]func(*realizar.Sampling, *sample.Params){
		"nothing":     func(*realizar.Sampling, *sample.Params) {},
		"temperature": func(s *realizar.Sampling, p *sample.Params) { s.Temperature, p.Temperature = 0.5, 0.5 },
		"top-k":       func(s *realizar.Sampling, p *sample.Params) { s.TopK, p.TopK = 3, 3 },
		"typical":     func(s *realizar.Sampling, p *sample.Params) { s.Typical, p.Typical = 0.1, 0.1 },
		"top-p":       func(s *realizar.Sampling, p *sample.Params) { s.TopP, p.TopP = 0.1, 0.1 },
		"min-p":       func(s *realizar.Sampling, p *sample.Params) { s.MinP, p.MinP = 0.99, 0.99 },
		"seed":        func(s *realizar.Sampling, p *sample.Params) { s.Seed, p.Seed = 5, 5 },
	} {
		s, p := base, sample.Params{Temperature: base.Temperature, Seed: base.Seed}
		change(&s, &p)
		list := slices.Clone(prompt)
		for range 24 {
			var sampler sample.Sampler
			id, err := sampler.Token(lastLogits(t, m, list), &p, nil, nil, -1, len(list))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, id)
		}
		want := list[len(prompt):]
		got := generate(t, m, realizar.Request{PromptTokens: prompt, Generation: realizar.Generation{Sampling: s, MaxTokens: new(24), IgnoreEnd: true}}).tokens
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if slices.ContainsFunc(before, func(b []int32) bool { return slices.Equal(b, got) }) {
			t.Errorf("%s changes nothing", name)
		}
		before = append(before, got)
	}
}
