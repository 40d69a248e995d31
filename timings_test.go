package realizar_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
)

func TestTimings(t *testing.T) {
	m := open(t, realizar.Options{})
	some := generate(t, m, realizar.Request{Prompt: "hello world", Generation: limit(5)}).finish.Timings
	if some.Prefill <= 0 || some.Decode <= 0 || some.Detokenize <= 0 {
		t.Errorf("an answer took %+v; want every time", some)
	}
	if none := generate(t, m, realizar.Request{Prompt: "hello world", Generation: limit(0)}).finish.Timings; none != (realizar.Timings{}) {
		t.Errorf("an answer of no tokens took %+v", none)
	}
}

// An answer ends after MaxTime, once its text has a line break.
func TestMaxTime(t *testing.T) {
	m := open(t, realizar.Options{})
	for pattern, want := range map[string]int{`(hello\n)+`: 3, `(hello )+`: 12} {
		g, err := realizar.Regexp(pattern)
		if err != nil {
			t.Fatal(err)
		}
		r := realizar.Request{Prompt: "hello world", Generation: realizar.Generation{MinTokens: 12, MaxTokens: new(12), MaxTime: 1, Grammar: g}}
		got := generate(t, m, r)
		if got.finish.Reason != realizar.FinishLength || got.finish.Usage.CompletionTokens > want || want == 12 && got.finish.Usage.CompletionTokens < want {
			t.Errorf("%s: %q of %d tokens, %s; want %d tokens", pattern, got.text, got.finish.Usage.CompletionTokens, got.finish.Reason, want)
		}
	}
}

// With LayerTimes every token has the times of all layers and the time outside of layers. The
// answer does not change, and the times add up to no more than the answer took.
func TestLayerTimes(t *testing.T) {
	m := open(t, realizar.Options{})
	const layers = 2 // of the default test model
	r := realizar.Request{Prompt: "hello world", Generation: realizar.Generation{MaxTokens: new(6), IgnoreEnd: true, Choices: 2, LogProbs: new(0)}}
	want, err := collectAll(m.Generate(t.Context(), &r), 2)
	if err != nil {
		t.Fatal(err)
	}
	r.LayerTimes = true
	begun := time.Now()
	var tokens [2][]int32
	var sum [2]time.Duration
	for e, err := range m.Generate(t.Context(), &r) {
		if err != nil {
			t.Fatal(err)
		}
		if len(e.LayerTimes) != len(e.Tokens) {
			t.Errorf("%d times of %d tokens", len(e.LayerTimes), len(e.Tokens))
		}
		for i, times := range e.LayerTimes {
			if len(times) != layers+1 {
				t.Errorf("token %d has %d times for %d layers", i, len(times), layers)
			}
			for _, d := range times {
				if sum[e.Choice] += d; d <= 0 {
					t.Errorf("token %d has the times %v", i, times)
				}
			}
		}
		tokens[e.Choice] = append(tokens[e.Choice], e.Tokens...)
	}
	for i, d := range sum {
		if most := time.Since(begun); d > most {
			t.Errorf("the layers of answer %d took %v in %v", i, d, most)
		}
		if !slices.Equal(tokens[i], want[i].tokens) {
			t.Errorf("measured, answer %d is %v, not %v", i, tokens[i], want[i].tokens)
		}
	}
	r.LayerTimes = false
	for e, err := range m.Generate(t.Context(), &r) {
		if err != nil {
			t.Fatal(err)
		}
		if e.LayerTimes != nil {
			t.Errorf("times %v that nobody asked for", e.LayerTimes)
		}
	}
}

// ChatPrompt returns the ids that Chat runs, with the times of rendering and tokenizing.
func TestChatPrompt(t *testing.T) {
	m := open(t, realizar.Options{})
	r := &realizar.ChatRequest{
		Messages: []chat.Message{{Role: "user", Content: "hello <|im_end|> world"}}, Generation: realizar.Generation{MaxTokens: new(8), IgnoreEnd: true},
	}
	prompt, err := m.ChatPrompt(t.Context(), r, 0)
	if err != nil {
		t.Fatal(err)
	}
	if prompt.Render <= 0 || prompt.Tokenize <= 0 || !strings.Contains(prompt.Text.String(), "hello <|im_end|> world") {
		t.Errorf("the prompt is %+v", prompt)
	}
	asked, err := collect(m.Chat(t.Context(), r))
	if err != nil {
		t.Fatal(err)
	}
	same := generate(t, m, realizar.Request{PromptTokens: prompt.Tokens, Generation: r.Generation})
	if asked.text != same.text || asked.finish.Usage.PromptTokens != len(prompt.Tokens) {
		t.Errorf("%q of %+v, but %q of %+v", asked.text, asked.finish.Usage, same.text, same.finish.Usage)
	}
}
