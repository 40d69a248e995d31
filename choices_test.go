package realizar_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
)

// collectAll returns the n answers to a request.
func collectAll(events func(func(realizar.Event, error) bool), n int) ([]answer, error) {
	all := make([]answer, n)
	for e, err := range events {
		if err != nil {
			return all, err
		}
		a := &all[e.Choice]
		if a.finish != nil {
			return all, fmt.Errorf("an event of answer %d after its last", e.Choice)
		}
		a.add(e)
	}
	for i := range all {
		if all[i].finish == nil {
			return all, fmt.Errorf("answer %d has no last event", i)
		}
	}
	return all, nil
}

func generateAll(t *testing.T, m *realizar.Model, r realizar.Request) []answer {
	t.Helper()
	all, err := collectAll(m.Generate(t.Context(), &r), max(1, r.Choices))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// An answer does not depend on the number of choices, or on how many answers run at a time.
func TestChoices(t *testing.T) {
	random := realizar.Generation{MaxTokens: new(24), IgnoreEnd: true, Sampling: realizar.Sampling{Temperature: 1.3, Seed: 5, PresencePenalty: 0.5}}
	var want []answer
	for _, parallel := range []int{1, 3, 8} {
		m := open(t, realizar.Options{Parallel: parallel})
		for _, n := range []int{0, 1, 2, 5} {
			g := random
			g.Choices = n
			all := generateAll(t, m, realizar.Request{Prompt: "hello", Generation: g})
			for i, a := range all {
				if i == len(want) {
					want = append(want, a)
				}
				if a.text != want[i].text || !slices.Equal(a.tokens, want[i].tokens) || a.finish.Usage.CompletionTokens != 24 {
					t.Errorf("%d at one time: answer %d of %d is %v, want %v", parallel, i, n, a.tokens, want[i].tokens)
				}
				for j := range i {
					if slices.Equal(a.tokens, all[j].tokens) {
						t.Errorf("answers %d and %d are the same: %v", i, j, a.tokens)
					}
				}
			}
		}
	}
	m := open(t, realizar.Options{})
	g := random
	g.Choices = 3
	for i, a := range generateAll(t, m, realizar.Request{Prompt: "hello", Generation: g}) {
		// A stop string ends each answer that has it.
		text := []rune(a.text)
		g.Stop = []string{string(text[len(text)/2 : len(text)/2+2])}
		for j, b := range generateAll(t, m, realizar.Request{Prompt: "hello", Generation: g}) {
			whole, _, has := strings.Cut(want[j].text, g.Stop[0])
			if b.text != whole || has != (b.finish.StopString == g.Stop[0]) || has != (b.finish.Reason == realizar.FinishStop) {
				t.Errorf("stop %q, of answer %d: answer %d is %q (%+v), want %q", g.Stop[0], i, j, b.text, b.finish, whole)
			}
		}
		g.Stop = nil
	}
	g.Choices, g.MaxTokens = 2, new(0)
	for i, a := range generateAll(t, m, realizar.Request{Prompt: "hello", Generation: g}) {
		if len(a.tokens) > 0 || a.finish.Reason != realizar.FinishLength {
			t.Errorf("answer %d of no tokens is %v", i, a.tokens)
		}
	}
}

// Leaving the loop ends all answers.
func TestLeavingChoices(t *testing.T) {
	m := open(t, realizar.Options{Parallel: 2})
	g := realizar.Generation{IgnoreEnd: true, Choices: 4, Sampling: realizar.Sampling{Temperature: 1}}
	for range 3 {
		for e, err := range m.Generate(t.Context(), &realizar.Request{Prompt: "hello", Generation: g}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Choice == 1 {
				break
			}
		}
	}
	if s := m.Metrics(); s.Running != 0 || s.Waiting != 0 {
		t.Errorf("%d answers run and %d wait when all loops were left", s.Running, s.Waiting)
	}
}

func TestMinTokens(t *testing.T) {
	plain := open(t, realizar.Options{})
	free := generate(t, plain, realizar.Request{Prompt: "hello", Generation: realizar.Generation{MaxTokens: new(30), IgnoreEnd: true}}).tokens
	m := open(t, realizar.Options{}, modeltest.Metadata("tokenizer.ggml.eos_token_id", uint32(free[0])))
	for _, least := range []int{0, 1, 2, 7, 30} {
		g := realizar.Generation{MaxTokens: new(30), MinTokens: least, StopTokens: []int32{free[1]}}
		a := generate(t, m, realizar.Request{Prompt: "hello", Generation: g})
		stop := slices.IndexFunc(a.tokens, func(id int32) bool { return id == free[0] || id == free[1] })
		if n := len(a.tokens); n < least || stop >= 0 && (stop < least || stop != n-1) || (stop >= 0) != (a.finish.Reason == realizar.FinishStop) {
			t.Errorf("at least %d tokens: %v, %q, with the end tokens %v", least, a.tokens, a.finish.Reason, free[:2])
		}
	}
	g := realizar.Generation{MaxTokens: new(3), MinTokens: 4}
	if _, err := collect(m.Generate(t.Context(), &realizar.Request{Prompt: "hello", Generation: g})); !errors.Is(err, realizar.ErrRequest) || !strings.Contains(err.Error(), "MinTokens is 4, above MaxTokens, which is 3") {
		t.Errorf("at least 4 of 3 tokens: %v", err)
	}
}

func TestMask(t *testing.T) {
	m := open(t, realizar.Options{})
	type call struct{ choice, chosen int }
	calls := map[call]int{}
	allowed := []int32{7, 65, 66, 200}
	g := realizar.Generation{MaxTokens: new(12), IgnoreEnd: true, Choices: 3, Sampling: realizar.Sampling{Temperature: 1, Seed: 2}}
	g.Mask = func(choice int, chosen []int32, mask []uint32) error {
		calls[call{choice, len(chosen)}]++
		if len(mask) != (m.Vocab()+31)/32 {
			t.Errorf("a mask of %d words for %d tokens", len(mask), m.Vocab())
		}
		for _, id := range allowed {
			if len(chosen) == 0 || chosen[len(chosen)-1] != id {
				mask[id/32] |= 1 << (id % 32)
			}
		}
		return nil
	}
	for i, a := range generateAll(t, m, realizar.Request{Prompt: "hello", Generation: g}) {
		last := int32(-1)
		for _, id := range a.tokens {
			if !slices.Contains(allowed, id) || id == last {
				t.Errorf("answer %d has token %d after %d", i, id, last)
			}
			last = id
		}
		for n := range 12 {
			if calls[call{i, n}] != 1 {
				t.Errorf("after %d tokens of answer %d the mask was asked for %d times", n, i, calls[call{i, n}])
			}
		}
	}
	wrong := errors.New("no such grammar")
	g.Mask = func(_ int, chosen []int32, mask []uint32) error {
		if mask[0] = 1; len(chosen) == 4 {
			return wrong
		}
		return nil
	}
	if _, err := collectAll(m.Generate(t.Context(), &realizar.Request{Prompt: "hello", Generation: g}), 3); !errors.Is(err, wrong) {
		t.Errorf("a mask that fails: %v", err)
	}
	g.Mask = func(int, []int32, []uint32) error { return nil }
	if _, err := collectAll(m.Generate(t.Context(), &realizar.Request{Prompt: "hello", Generation: g}), 3); err == nil {
		t.Error("a mask that allows nothing is no error")
	}
}

func TestRequestErrors(t *testing.T) {
	m := open(t, realizar.Options{})
	nan := float32(math.NaN())
	for _, test := range []struct {
		g    realizar.Generation
		says string
	}{
		{realizar.Generation{Choices: -1}, "-1 choices"},
		{realizar.Generation{Choices: 1025}, "1025 choices; want 1 to 1024"},
		{realizar.Generation{MinTokens: -1}, "MinTokens is -1"},
		{realizar.Generation{LogProbs: new(-1)}, "-1 likeliest"},
		{realizar.Generation{LogProbs: new(257)}, "257 likeliest tokens; want 0 to 256"},
		{realizar.Generation{PromptLogProbs: new(1000)}, "1000 likeliest tokens; want 0 to 256"},
		{realizar.Generation{LogitBias: map[int32]float32{3: 1, 272: 1}}, "token 272, which is outside the vocabulary of 272"},
		{realizar.Generation{LogitBias: map[int32]float32{-1: 1}}, "token -1"},
		{realizar.Generation{LogitBias: map[int32]float32{3: nan}}, "NaN for token 3"},
		{realizar.Generation{LogitBias: map[int32]float32{4: float32(math.Inf(1))}}, "+Inf for token 4"},
		{realizar.Generation{Sampling: realizar.Sampling{Typical: 1.5}}, "Typical is 1.5"},
		{realizar.Generation{Sampling: realizar.Sampling{RepetitionPenalty: -1}}, "Repetition is -1"},
		{realizar.Generation{Sampling: realizar.Sampling{PresencePenalty: 101}}, "Presence is 101"},
		{realizar.Generation{Sampling: realizar.Sampling{FrequencyPenalty: nan}}, "Frequency is NaN"},
	} {
		_, err := collect(m.Generate(t.Context(), &realizar.Request{Prompt: "hello", Generation: test.g}))
		if !errors.Is(err, realizar.ErrRequest) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v, want %q", test.g, err, test.says)
		}
	}
}
