package e2e_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
)

const beginning = "once upon a time"

// continued returns a completion of texts with the likeliest tokens.
func continued(tokens int64, texts ...string) openai.CompletionNewParams {
	p := openai.CompletionNewParams{Model: modelName, Temperature: openai.Float(0), MaxTokens: openai.Int(tokens)}
	if p.Prompt.OfArrayOfStrings = texts; len(texts) == 1 {
		p.Prompt = openai.CompletionNewParamsPromptUnion{OfString: openai.String(texts[0])}
	}
	return p
}

func TestCompletions(t *testing.T) {
	s := serve(t)
	want := run(t, beginning, "--raw", "--max-tokens", "20")
	other := run(t, question, "--raw", "--max-tokens", "20")
	one, err := s.client().Completions.New(t.Context(), continued(20, beginning))
	if err != nil {
		t.Fatal(err)
	}
	if c := one.Choices; len(c) != 1 || c[0].Text != want.Text || string(c[0].FinishReason) != want.FinishReason || one.Usage.PromptTokens != want.Usage.Prompt || one.Usage.CompletionTokens != 20 || one.Object != "text_completion" {
		t.Errorf("got %s, want %q", one.RawJSON(), want.Text)
	}
	two, err := s.client().Completions.New(t.Context(), continued(20, beginning, question))
	if err != nil {
		t.Fatal(err)
	}
	if c := two.Choices; len(c) != 2 || c[0].Text != want.Text || c[1].Text != other.Text || c[1].Index != 1 {
		t.Errorf("got %s, want %q and %q", two.RawJSON(), want.Text, other.Text)
	}
	// The same prompts as token ids.
	p := continued(20)
	p.Prompt = openai.CompletionNewParamsPromptUnion{OfArrayOfTokenArrays: [][]int64{s.tokenize(beginning), s.tokenize(question)}}
	ids, err := s.client().Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if c := ids.Choices; len(c) != 2 || c[0].Text != want.Text || c[1].Text != other.Text {
		t.Errorf("by ids: %s, want %q and %q", ids.RawJSON(), want.Text, other.Text)
	}
	p.Suffix = openai.String("the end")
	_, err = s.client().Completions.New(t.Context(), p)
	refusal(t, err, 400, "suffix")
}

func TestCompletionStream(t *testing.T) {
	s := serve(t)
	want := run(t, beginning, "--raw", "--max-tokens", "20")
	p := continued(20, beginning)
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := s.client().Completions.NewStreaming(t.Context(), p)
	defer stream.Close()
	var text strings.Builder
	var reasons []string
	var usage openai.CompletionUsage
	for stream.Next() {
		for _, c := range stream.Current().Choices {
			text.WriteString(c.Text)
			if c.FinishReason != "" {
				reasons = append(reasons, string(c.FinishReason))
			}
		}
		if u := stream.Current().Usage; u.TotalTokens > 0 {
			usage = u
		}
	}
	if err := stream.Err(); err != nil || text.String() != want.Text || !slices.Equal(reasons, []string{"length"}) || usage.CompletionTokens != 20 || usage.PromptTokens != want.Usage.Prompt {
		t.Errorf("%v, %q, %q, %+v, want %q", err, &text, reasons, usage, want.Text)
	}
}

// textScores are the scores of a completion. The client's own type cannot hold those of the
// first token of a prompt, which are null.
type textScores struct {
	Tokens []string
	Own    []*float64           `json:"token_logprobs"`
	Top    []map[string]float64 `json:"top_logprobs"`
	Places []int                `json:"text_offset"`
}

func scored(t *testing.T, s *server, tokens, top int64) (*openai.Completion, textScores) {
	t.Helper()
	p := continued(tokens, beginning)
	p.Echo, p.Logprobs = openai.Bool(true), openai.Int(top)
	got, err := s.client().Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var scores textScores
	if err := json.Unmarshal([]byte(got.Choices[0].Logprobs.RawJSON()), &scores); err != nil {
		t.Fatal(err)
	}
	if n := len(scores.Tokens); n != int(got.Usage.PromptTokens+tokens) || len(scores.Own) != n || len(scores.Top) != n || len(scores.Places) != n ||
		strings.Join(scores.Tokens, "") != got.Choices[0].Text || scores.Own[0] != nil || scores.Top[0] != nil {
		t.Fatalf("the scores are %s", got.RawJSON())
	}
	place := 0
	for i, token := range scores.Tokens {
		if scores.Places[i] != place || i > 0 && (!(*scores.Own[i] < 0) || len(scores.Top[i]) < int(top)) {
			t.Errorf("token %d, %q, is at %d, want %d, and has %v", i, token, scores.Places[i], place, scores.Top[i])
		}
		place += len(token)
	}
	return got, scores
}

// TestScores scores a prompt, by echo and an answer of no tokens.
func TestScores(t *testing.T) {
	s := serve(t)
	alone, prompt := scored(t, s, 0, 3)
	if alone.Choices[0].Text != beginning || alone.Usage.CompletionTokens != 0 {
		t.Errorf("got %s", alone.RawJSON())
	}
	// With an answer after it, the prompt has the same scores, and the tokens of the answer
	// are the likeliest.
	want := run(t, beginning, "--raw", "--max-tokens", "5")
	both, scores := scored(t, s, 5, 1)
	if both.Choices[0].Text != beginning+want.Text {
		t.Errorf("got %q, want %q", both.Choices[0].Text, beginning+want.Text)
	}
	for i, token := range scores.Tokens {
		switch {
		case i == 0:
		case i < len(prompt.Tokens) && *scores.Own[i] != *prompt.Own[i]:
			t.Errorf("token %d has %v, and %v before an answer", i, *prompt.Own[i], *scores.Own[i])
		case i >= len(prompt.Tokens) && scores.Top[i][token] != *scores.Own[i]:
			t.Errorf("token %d, %q, is not the likeliest of %v", i, token, scores.Top[i])
		}
	}
}
