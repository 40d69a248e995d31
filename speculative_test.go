package realizar_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/modeltest"
)

// An answer has the same tokens, log-probabilities and end with proposals and without, whatever is
// asked for, alone and among others.
func TestSpeculativeAnswers(t *testing.T) {
	var grammars []*realizar.Grammar
	for _, s := range schemas {
		g, err := realizar.JSONSchema([]byte(s), realizar.JSONOptions{})
		if err != nil {
			t.Fatal(err)
		}
		grammars = append(grammars, g)
	}
	for _, model := range []string{"demo/demo.gguf", modeltest.Llama(t, modeltest.EndTokens())} {
		for _, tokens := range []int{0, 5, realizar.MaxSpeculativeTokens} {
			t.Run(fmt.Sprint(model[:4], "/", tokens), func(t *testing.T) {
				// The cache has room for some of the answers only.
				o := realizar.Options{Device: "cpu", Parallel: 16, Context: 256, Speculative: realizar.SpeculativeOff, HostCache: 1 << 20}
				plain, err := realizar.Open(t.Context(), model, o)
				if err != nil {
					t.Fatal(err)
				}
				defer plain.Close()
				o.Speculative, o.SpeculativeTokens = realizar.SpeculativeSuffix, tokens
				m, err := realizar.Open(t.Context(), model, o)
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				n := longtest.Cases(384, 128)
				for begin := 0; begin < n; begin += 64 {
					var all sync.WaitGroup
					for i := begin; i < begin+64; i++ {
						all.Go(func() {
							r := randomRequest(uint64(i), grammars)
							want, err := collect(plain.Generate(t.Context(), &r))
							got, gotErr := collect(m.Generate(t.Context(), &r))
							if (err == nil) != (gotErr == nil) || err != nil && err.Error() != gotErr.Error() {
								t.Errorf("request %d ends with %v, without proposals with %v", i, gotErr, err)
								return
							}
							if err != nil {
								return
							}
							for _, a := range []*answer{&want, &got} {
								a.finish.Timings, a.finish.Usage.CachedTokens = realizar.Timings{}, 0
							}
							if d := cmp.Diff(want, got, cmp.AllowUnexported(answer{})); d != "" {
								t.Errorf("request %d (-without proposals +with them): %s", i, d)
							}
						})
					}
					all.Wait()
				}
				if s := m.Metrics(); s.Proposals == 0 || s.AcceptedTokens == 0 || s.AcceptedTokens == s.ProposedTokens {
					t.Errorf("of %d proposed tokens %d were right", s.ProposedTokens, s.AcceptedTokens)
				}
				if s := plain.Metrics(); s.Proposals > 0 {
					t.Errorf("%d proposals of a model that has none", s.Proposals)
				}
			})
		}
	}
}

// randomRequest returns a request whose answer is likely to repeat parts of the prompt or itself.
func randomRequest(seed uint64, grammars []*realizar.Grammar) realizar.Request {
	rng := rand.New(rand.NewPCG(seed, 1))
	words := strings.Fields("the port of a server is 8080 and list words {\"name\": 12} again")
	var prompt []string
	for range 4 + rng.IntN(30) {
		prompt = append(prompt, words[rng.IntN(1+rng.IntN(len(words)))])
	}
	g := realizar.Generation{MaxTokens: new(1 + rng.IntN(60)), Priority: rng.IntN(2)}
	g.Seed = seed
	g.Temperature = []float32{0, 0, 0.7, 1.5}[rng.IntN(4)]
	switch rng.IntN(4) {
	case 0:
		g.TopP = 0.9
	case 1:
		g.MinP = 0.05
	case 2:
		g.TopK = 40
	}
	switch rng.IntN(5) {
	case 0:
		g.RepetitionPenalty = 1.1
	case 1:
		g.FrequencyPenalty, g.PresencePenalty = 0.3, 0.2
	}
	if rng.IntN(3) == 0 {
		g.Grammar = grammars[rng.IntN(len(grammars))]
	} else if rng.IntN(2) == 0 {
		g.IgnoreEnd = true
	}
	switch rng.IntN(4) {
	case 0:
		g.LogProbs = new(0)
	case 1:
		g.LogProbs = new(3)
	}
	if rng.IntN(4) == 0 {
		g.Stop = []string{words[rng.IntN(len(words))]}
	}
	if rng.IntN(4) == 0 {
		g.MinTokens = rng.IntN(*g.MaxTokens + 1)
	}
	if rng.IntN(5) == 0 {
		g.LogitBias = map[int32]float32{int32(rng.IntN(200)): 2, int32(200 + rng.IntN(50)): -3}
	}
	return realizar.Request{Prompt: strings.Join(prompt, " "), Generation: g}
}
