package realizar_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/realizar/realizar"
)

// likeliest returns the tokens in descending order of their log-probabilities, and the
// log-probabilities by id, computed in the simplest way.
func likeliest(logits []float32) (order []int32, logProbs []float64) {
	var sum float64
	for i, l := range logits {
		sum += math.Exp(float64(l))
		order = append(order, int32(i))
	}
	for _, l := range logits {
		logProbs = append(logProbs, float64(l)-math.Log(sum))
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(logits[b], logits[a]) })
	return order, logProbs
}

// checkLogProbs compares the log-probabilities of ids[first:] with the logits before them.
func checkLogProbs(t *testing.T, m *realizar.Model, ids []int32, first, top int, got []realizar.TokenLogProb) {
	t.Helper()
	if len(got) != len(ids)-first {
		t.Fatalf("%d log-probabilities of %d tokens", len(got), len(ids)-first)
	}
	// Without top tokens the log-probabilities are computed on the device, which rounds them.
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-5 }
	err := m.Logits(t.Context(), ids, 0, func(i int, logits []float32) error {
		at := i + 1 - first
		if at < 0 || at >= len(got) {
			return nil
		}
		order, want := likeliest(logits)
		x := got[at]
		if x.Token != ids[i+1] || !near(x.LogProb, want[x.Token]) || len(x.Top) != min(top, len(logits)) {
			t.Errorf("token %d: %+v, want %d with %v and %d others", i+1, x, ids[i+1], want[ids[i+1]], top)
		}
		for j, y := range x.Top {
			if y.Token != order[j] || !near(y.LogProb, want[y.Token]) {
				t.Errorf("token %d: the likeliest at %d is %+v, want %d with %v", i+1, j, y, order[j], want[order[j]])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Log-probabilities are those of the model's logits, for all sampling parameters, and come with
// their tokens.
func TestLogProbs(t *testing.T) {
	m := open(t, realizar.Options{})
	prompt := []int32{5, 71, 9, 71, 200, 14, 30}
	for name, s := range map[string]realizar.Sampling{
		"greedy": {}, "random": {Temperature: 1.5, TopK: 40, Typical: 0.9, Seed: 3}, "penalties": {RepetitionPenalty: 1.5, PresencePenalty: 2},
	} {
		for _, top := range []int{0, 1, 5, 256} {
			g := realizar.Generation{Sampling: s, MaxTokens: new(12), IgnoreEnd: true, LogProbs: &top, Choices: 2, Stop: []string{"never said: \x00\x01\x02"}}
			for i, a := range generateAll(t, m, realizar.Request{PromptTokens: prompt, Generation: g}) {
				if len(a.tokens) != 12 {
					t.Errorf("%s: answer %d has %d tokens", name, i, len(a.tokens))
				}
				checkLogProbs(t, m, slices.Concat(prompt, a.tokens), len(prompt), top, a.logProbs)
			}
		}
	}
	for _, a := range generateAll(t, m, realizar.Request{PromptTokens: prompt, Generation: limit(3)}) {
		if a.logProbs != nil {
			t.Errorf("log-probabilities that nobody asked for: %v", a.logProbs)
		}
	}
}

// The log-probabilities of a prompt come once, before all answers.
func TestPromptLogProbs(t *testing.T) {
	m := open(t, realizar.Options{})
	long := make([]int32, 150)
	for i := range long {
		long[i] = int32(i * 7 % 250)
	}
	for _, prompt := range [][]int32{{7}, {7, 9}, long} {
		for _, n := range []int{0, 5} {
			for _, top := range []int{0, 3} {
				g := realizar.Generation{MaxTokens: &n, IgnoreEnd: true, PromptLogProbs: &top, Choices: 3, Sampling: realizar.Sampling{Temperature: 1}}
				var scores []realizar.TokenLogProb
				events, ended := 0, 0
				for e, err := range m.Generate(t.Context(), &realizar.Request{PromptTokens: prompt, Generation: g}) {
					if err != nil {
						t.Fatal(err)
					}
					if e.PromptLogProbs != nil {
						if events > 0 || len(e.Tokens) > 0 || e.Finish != nil {
							t.Errorf("the prompt's scores are in event %d: %+v", events, e)
						}
						scores = e.PromptLogProbs
					}
					if events++; e.Finish != nil {
						ended++
					}
				}
				checkLogProbs(t, m, prompt, 1, top, scores)
				if ended != 3 {
					t.Errorf("a prompt of %d: %d answers ended, want 3", len(prompt), ended)
				}
			}
		}
	}
}
