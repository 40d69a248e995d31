package demo_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/demo"
	"github.com/realizar/realizar/internal/longtest"
)

// An answer is what must not depend on proposals.
type answer struct {
	Text     string
	Tokens   []int32
	LogProbs []realizar.TokenLogProb
	Reason   realizar.FinishReason
	Usage    realizar.Usage
}

// ask returns m's answer to a question.
func ask(t *testing.T, m *realizar.Model, q *question, g *realizar.Generation) (a answer, err error) {
	r := &realizar.ChatRequest{Generation: *g}
	for _, message := range q.Messages {
		r.Messages = append(r.Messages, chat.Message{Role: message.Role, Content: message.Content})
	}
	var text strings.Builder
	for event, err := range m.Chat(t.Context(), r) {
		if err != nil {
			return a, err
		}
		text.WriteString(event.Text)
		a.Tokens, a.LogProbs = append(a.Tokens, event.Tokens...), append(a.LogProbs, event.LogProbs...)
		if f := event.Finish; f != nil {
			a.Reason, a.Usage = f.Reason, f.Usage
		}
	}
	a.Text, a.Usage.CachedTokens = text.String(), 0
	return a, nil
}

// generations are ways to sample.
func generations(t *testing.T) (all []realizar.Generation) {
	t.Helper()
	object, err := realizar.JSONSchema([]byte(`{"type": "object", "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}, "required": ["name", "count"]}`), realizar.JSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []realizar.Sampling{
		{},
		{Temperature: 0.7},
		{Temperature: 1.5, TopP: 0.9},
		{Temperature: 1.5, MinP: 0.05, RepetitionPenalty: 1.1},
		{Temperature: 0.7, FrequencyPenalty: 0.3, PresencePenalty: 0.2},
		{Temperature: 1, TopK: 40},
	} {
		for _, grammar := range []*realizar.Grammar{nil, object} {
			for _, probabilities := range []*int{nil, new(3)} {
				all = append(all, realizar.Generation{Sampling: s, Grammar: grammar, LogProbs: probabilities, MaxTokens: new(100)})
			}
		}
	}
	return all
}

// openDemo opens the model with the head's proposals, of n tokens in each step, or without any.
func openDemo(t *testing.T, n int) *realizar.Model {
	t.Helper()
	o := realizar.Options{Device: "cpu", Speculative: realizar.SpeculativeEAGLE, SpeculativeTokens: n}
	if n == 0 {
		o.Speculative = realizar.SpeculativeOff
	}
	m, err := realizar.Open(t.Context(), demo.Name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// Answers are the same with the proposals of the head and without, however they are sampled.
func TestHead(t *testing.T) {
	all, ways := questions(t), generations(t)
	n := longtest.Cases(288, 72)
	plain, heads := openDemo(t, 0), openDemo(t, 4)
	var asking errgroup.Group
	asking.SetLimit(16)
	for i := range n {
		asking.Go(func() error {
			q, g := all[i*len(all)/n], ways[i%len(ways)]
			g.Seed, g.SpeculativeTokens = uint64(i), new(1+i/len(ways)%4)
			want, err := ask(t, plain, q, &g)
			if err != nil {
				return err
			}
			got, err := ask(t, heads, q, &g)
			if err != nil {
				return err
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("answer %d (-without the head +with it): %s", i, d)
			}
			return nil
		})
	}
	if err := asking.Wait(); err != nil {
		t.Fatal(err)
	}
}

// Of three tokens that the head proposes in each step of greedy answers, at least 1.2 are right on
// average.
func TestHeadPredicts(t *testing.T) {
	all := questions(t)
	m := openDemo(t, 3)
	const n = 48
	var asking errgroup.Group
	asking.SetLimit(16)
	for i := range n {
		asking.Go(func() error {
			_, err := ask(t, m, all[i*len(all)/n], &realizar.Generation{MaxTokens: new(100)})
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		t.Fatal(err)
	}
	s := m.Metrics()
	t.Logf("%d of %d proposed tokens are right, %.2f in a step; by place %v", s.AcceptedTokens, s.ProposedTokens, float64(s.AcceptedTokens)/float64(s.Proposals), s.AcceptedAt[:3])
	if s.Proposals == 0 || 10*s.AcceptedTokens < 12*s.Proposals {
		t.Errorf("%d of %d proposed tokens are right in %d steps, want 1.2 in a step", s.AcceptedTokens, s.ProposedTokens, s.Proposals)
	}
}
