package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// continued is the greedy continuation of a prompt, from the model itself.
func continued(t testing.TB, m *realizar.Model, prompt string, tokens int) string {
	t.Helper()
	var out strings.Builder
	r := &realizar.Request{Prompt: prompt, Generation: realizar.Generation{MaxTokens: &tokens}}
	for e, err := range m.Generate(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(e.Text)
	}
	return out.String()
}

func TestCompletions(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	prompt, err := s.model.Prompt(t.Context(), &realizar.Request{Prompt: "hello world"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	numbers, _ := json.Marshal(prompt.Tokens)
	hello, other := continued(t, s.model, "hello world", 16), continued(t, s.model, "other", 16)
	for prompt, want := range map[string][]string{
		`"hello world"`:                          {hello},
		string(numbers):                          {hello},
		`["hello world","other"]`:                {hello, other},
		fmt.Sprintf(`[%s,%s]`, numbers, numbers): {hello, hello},
	} {
		body := `{"model":"small","temperature":0,"prompt":` + prompt
		a := s.post("/v1/completions", body+`}`).whole(t)
		if a.Object != "text_completion" || !strings.HasPrefix(a.ID, "cmpl-") || a.Usage.Completion != 16*len(want) || len(a.Choices) != len(want) {
			t.Errorf("%s: %+v", prompt, a)
			continue
		}
		stream, err := s.stream("/v1/completions", body+`,"stream":true,"stream_options":{"include_usage":true}}`)
		if err != nil {
			t.Fatal(err)
		}
		if stream.usage == nil || stream.usage.Completion != 16*len(want) || !stream.done {
			t.Errorf("%s: a stream of %+v", prompt, stream)
		}
		for i, want := range want {
			if c := a.Choices[i]; c.Index != i || c.Text != want || value(c.FinishReason) != "length" || stream.texts[i] != want || stream.reason[i] != "length" {
				t.Errorf("%s: %+v, in a stream %q, want %q", prompt, c, stream.texts[i], want)
			}
		}
	}
}

// Several prompts with several answers are numbered prompt by prompt; those of a prompt
// are what it has alone.
func TestCompletionsOfPrompts(t *testing.T) {
	s := serve(t, server.Config{Parallel: 3}, realizar.Options{Parallel: 3})
	more := `,"n":2,"max_tokens":6,"temperature":1.2,"seed":11}`
	all := s.post("/v1/completions", `{"model":"small","prompt":["a","b","c"]`+more).whole(t)
	if len(all.Choices) != 6 {
		t.Fatalf("%+v", all)
	}
	for i, prompt := range []string{"a", "b", "c"} {
		one := s.post("/v1/completions", `{"model":"small","prompt":"`+prompt+`"`+more).whole(t)
		for j, c := range one.Choices {
			if got := all.Choices[2*i+j]; got.Text != c.Text || got.Index != 2*i+j {
				t.Errorf("answer %d of %q is %q beside others, alone %q", j, prompt, got.Text, c.Text)
			}
		}
	}
	// Without a seed, equal prompts have answers of their own.
	a := s.post("/v1/completions", `{"model":"small","prompt":["a","a","a","a"],"temperature":2}`).whole(t)
	if a.Choices[0].Text == a.Choices[1].Text && a.Choices[1].Text == a.Choices[2].Text {
		t.Errorf("%q three times", a.Choices[0].Text)
	}
}

// A text is scored by echo, logprobs and no tokens.
func TestCompletionsScore(t *testing.T) {
	for _, options := range [][]modeltest.Option{nil, {modeltest.AddBOS()}} {
		s := serve(t, server.Config{}, realizar.Options{}, options...)
		const prompt = "hello wörld in the"
		run, err := s.model.Prompt(t.Context(), &realizar.Request{Prompt: prompt}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var want []realizar.TokenLogProb
		r := &realizar.Request{Prompt: prompt, Generation: realizar.Generation{MaxTokens: new(0), PromptLogProbs: new(2)}}
		for e, err := range s.model.Generate(t.Context(), r) {
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, e.PromptLogProbs...)
		}
		a := s.post("/v1/completions", `{"model":"small","prompt":"`+prompt+`","echo":true,"logprobs":2,"max_tokens":0}`).whole(t)
		c := a.Choices[0]
		if c.Text != prompt || a.Usage.Completion != 0 || a.Usage.Prompt != len(run.Tokens) {
			t.Errorf("%+v", a)
		}
		l := c.LogProbs
		if len(l.Tokens) != len(run.Tokens) || len(l.Own) != len(run.Tokens) || len(l.Top) != len(run.Tokens) || len(l.Offsets) != len(run.Tokens) {
			t.Fatalf("%+v for %d tokens", l, len(run.Tokens))
		}
		if l.Own[0] != nil || l.Top[0] != nil {
			t.Error("the first token has a score")
		}
		for i, w := range want {
			if got := *l.Own[i+1]; got != w.LogProb {
				t.Errorf("token %d: %v, want %v", i+1, got, w.LogProb)
			}
			if len(l.Top[i+1]) == 0 || len(l.Top[i+1]) > 2 {
				t.Errorf("token %d: %v", i+1, l.Top[i+1])
			}
		}
		text := []rune(prompt)
		for i, at := range l.Offsets {
			if token := l.Tokens[i]; !strings.Contains(token, "\uFFFD") && !strings.HasPrefix(token, "<|") && !strings.HasPrefix(string(text[at:]), token) {
				t.Errorf("token %d, %q, is at %d of %q", i, token, at, prompt)
			}
		}
		if !slices.IsSorted(l.Offsets) {
			t.Errorf("offsets %v", l.Offsets)
		}
	}
}

func TestCompletionsEcho(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	want := "hello" + continued(t, s.model, "hello", 4)
	body := `{"model":"small","prompt":"hello","echo":true,"max_tokens":4,"temperature":0,"logprobs":1`
	a := s.post("/v1/completions", body+`}`).whole(t)
	stream, err := s.stream("/v1/completions", body+`,"stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	if a.Choices[0].Text != want || stream.texts[0] != want {
		t.Errorf("%q, in a stream %q, want %q", a.Choices[0].Text, stream.texts[0], want)
	}
	var tokens []string
	var offsets []int
	for _, chunk := range stream.chunks {
		if len(chunk.Choices) > 0 && chunk.Choices[0].LogProbs != nil {
			tokens = append(tokens, chunk.Choices[0].LogProbs.Tokens...)
			offsets = append(offsets, chunk.Choices[0].LogProbs.Offsets...)
		}
	}
	l := a.Choices[0].LogProbs
	if !slices.Equal(tokens, l.Tokens) || !slices.Equal(offsets, l.Offsets) || len(l.Tokens) != a.Usage.Total {
		t.Errorf("%q %v in a stream, else %q %v; %d tokens", tokens, offsets, l.Tokens, l.Offsets, a.Usage.Total)
	}
}

// A special token in a prompt counts where the request says so, and is text elsewhere.
func TestCompletionsSpecial(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	for more, want := range map[string]int{``: len("<|im_end|>"), `,"parse_special":true`: 1} {
		a := s.post("/v1/completions", `{"model":"small","prompt":"<|im_end|>","max_tokens":1`+more+`}`).whole(t)
		if a.Usage.Prompt != want {
			t.Errorf("%s: a prompt of %d tokens, want %d", more, a.Usage.Prompt, want)
		}
	}
}

func TestCompletionsErrors(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	for _, test := range []struct{ more, param, code string }{
		{``, "prompt", "missing_required_parameter"},
		{`"prompt":""`, "prompt", "invalid_value"},
		{`"prompt":[]`, "prompt", "invalid_value"},
		{`"prompt":[1,"a"]`, "prompt", "invalid_value"},
		{`"prompt":["a",[1]]`, "prompt", "invalid_value"},
		{`"prompt":[1,null]`, "prompt", "invalid_value"},
		{`"prompt":[999999]`, "prompt", "invalid_value"},
		{`"prompt":[-1]`, "prompt", "invalid_value"},
		{`"prompt":["a",""]`, "prompt", "invalid_value"},
		{`"prompt":"a","suffix":"b"`, "suffix", "unsupported_parameter"},
		{`"prompt":"a","best_of":2`, "best_of", "unsupported_parameter"},
		{`"prompt":"a","logprobs":6`, "logprobs", "invalid_value"},
		{`"prompt":"a","logprobs":true`, "logprobs", "invalid_value"},
		{`"prompt":"a","max_tokens":-2`, "max_tokens", "invalid_value"},
		{`"prompt":"a","messages":[]`, "messages", "unknown_parameter"},
		{`"prompt":"` + strings.Repeat("x", 300) + `"`, "prompt", "context_length_exceeded"},
	} {
		body := `{"model":"small"}`
		if test.more != "" {
			body = `{"model":"small",` + test.more + `}`
		}
		e := s.post("/v1/completions", body).fails(t, 400, test.param, test.code)
		if test.code == "context_length_exceeded" && (!strings.Contains(e.Message, "256") || !strings.Contains(e.Message, "300")) {
			t.Errorf("%q does not have both numbers", e.Message)
		}
	}
}

// prompt_logprobs are vLLM's: an object by token id for each place, none for the first,
// beside those that echo has.
func TestCompletionsPromptLogProbs(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	prompt, err := s.model.Prompt(t.Context(), &realizar.Request{Prompt: "hello world"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for more, echo := range map[string]bool{`,"prompt_logprobs":1`: false, `,"prompt_logprobs":1,"echo":true,"logprobs":4`: true} {
		c := s.post("/v1/completions", `{"model":"small","prompt":"hello world","max_tokens":1`+more+`}`).whole(t).Choices[0]
		if len(c.PromptLogProbs) != len(prompt.Tokens) || c.PromptLogProbs[0] != nil {
			t.Fatalf("%s: %+v", more, c)
		}
		for i, id := range prompt.Tokens[1:] {
			places := c.PromptLogProbs[i+1]
			own, ok := places[fmt.Sprint(id)]
			if !ok || len(places) > 2 || own.LogProb >= 0 {
				t.Errorf("%s: place %d, of token %d, is %+v", more, i+1, id, places)
			}
			first := 0
			for _, p := range places {
				if p.Rank != nil && *p.Rank == 1 {
					first++
				}
			}
			if first != 1 {
				t.Errorf("%s: place %d has %d tokens of the first rank", more, i+1, first)
			}
		}
		if echo && (c.LogProbs == nil || len(c.LogProbs.Top[1]) < 2) {
			t.Errorf("%+v", c.LogProbs)
		}
	}
	// A prompt of one token has nothing before it.
	c := s.post("/v1/completions", `{"model":"small","prompt":[5],"max_tokens":0,"echo":true,"logprobs":0,"prompt_logprobs":0}`).whole(t).Choices[0]
	if len(c.PromptLogProbs) != 1 || c.PromptLogProbs[0] != nil || len(c.LogProbs.Tokens) != 1 || c.LogProbs.Own[0] != nil || c.LogProbs.Top != nil {
		t.Errorf("%+v, %+v", c, c.LogProbs)
	}
}

// The token that ends an answer is counted, and is no part of its text or its scores.
func TestEndToken(t *testing.T) {
	plain := serve(t, server.Config{}, realizar.Options{})
	var ids []int32
	for e, err := range plain.model.Generate(t.Context(), &realizar.Request{Prompt: "hello", Generation: realizar.Generation{MaxTokens: new(5)}}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.Tokens...)
	}
	tok, err := plain.model.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	last := slices.Index(ids, ids[4]) // the first place that has it
	end, _ := tok.Token(ids[last])
	s := serve(t, server.Config{}, realizar.Options{}, modeltest.EndTokens(end))
	body := `{"model":"small","prompt":"hello","max_tokens":9,"temperature":0,"logprobs":1`
	a := s.post("/v1/completions", body+`}`).whole(t)
	c := a.Choices[0]
	if value(c.FinishReason) != "stop" || a.Usage.Completion != last+1 || len(c.LogProbs.Tokens) != last || c.Text != tok.Decode(ids[:last], true) {
		t.Errorf("%+v, %+v, want %d tokens without %q", a, c.LogProbs, last, end)
	}
	if a := s.post("/v1/completions", body+`,"ignore_eos":true}`).whole(t); a.Usage.Completion != 9 {
		t.Errorf("ignore_eos: %+v", a)
	}
}

// What the model's makers recommend holds where a request does not say.
func TestDefaultSampling(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{}, modeltest.Metadata("general.sampling.top_k", int32(1)))
	want := continued(t, s.model, "hello", 16)
	for more, same := range map[string]bool{``: true, `,"top_k":0,"seed":1,"temperature":2`: false} {
		if got := s.post("/v1/completions", `{"model":"small","prompt":"hello"`+more+`}`).whole(t).Choices[0].Text; (got == want) != same {
			t.Errorf("%s: %q, the greedy answer is %q", more, got, want)
		}
	}
}
