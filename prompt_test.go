package realizar

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/budget"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/modeltest"
)

// A prompt has the ids that its request runs: a request for these ids has the same answer.
func TestPrompt(t *testing.T) {
	m, err := Open(t.Context(), modeltest.Llama(t, modeltest.AddBOS()), Options{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close() //nolint:errcheck // that is tested elsewhere
	g := Generation{MaxTokens: new(6), IgnoreEnd: true}
	answer := func(events func(yield func(Event, error) bool)) (text string, prompt int) {
		t.Helper()
		var out strings.Builder
		for e, err := range events {
			if err != nil {
				t.Fatal(err)
			}
			if out.WriteString(e.Text); e.Finish != nil {
				prompt = e.Finish.Usage.PromptTokens
			}
		}
		return out.String(), prompt
	}
	request := &Request{Prompt: "hello <|im_end|>", Special: true, Generation: g}
	conversation := &ChatRequest{Messages: []chat.Message{{Role: "user", Content: "hello <|im_end|>"}}, Generation: g}
	for name, test := range map[string]struct {
		prompt func() (Prompt, error)
		events func(yield func(Event, error) bool)
	}{
		"text": {func() (Prompt, error) { return m.Prompt(t.Context(), request, 0) }, m.Generate(t.Context(), request)},
		"chat": {func() (Prompt, error) { return m.ChatPrompt(t.Context(), conversation, 0) }, m.Chat(t.Context(), conversation)},
	} {
		p, err := test.prompt()
		if err != nil {
			t.Fatal(err)
		}
		want, n := answer(test.events)
		if got, _ := answer(m.Generate(t.Context(), &Request{PromptTokens: p.Tokens, Generation: g})); got != want || n != len(p.Tokens) {
			t.Errorf("%s: %d ids and %q, want %d and %q", name, len(p.Tokens), got, n, want)
		}
	}
}

// After rendering, only the memory of the text and the ids stays reserved.
func TestChatPromptGivesBack(t *testing.T) {
	m, err := Open(t.Context(), modeltest.Llama(t, modeltest.Template(`{% set ns = namespace(s='') %}{% for c in messages[0].content %}{% set ns.s = ns.s ~ c %}{% endfor %}{{ ns.s }}`)), Options{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close() //nolint:errcheck // that is tested elsewhere
	const length = 4000
	account := budget.New(1<<30).Open("", func() {})
	p, err := m.ChatPrompt(budget.With(t.Context(), account), &ChatRequest{Messages: []chat.Message{{Role: "user", Content: strings.Repeat("a", length)}}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if held, most := account.Held(), int64(length+8*cap(p.Tokens)); held < length || held > most {
		t.Errorf("%d bytes are held, want %d to %d", held, length, most)
	}
}

// The default of Parallel is larger on a device than on the CPU.
func TestParallelByDefault(t *testing.T) {
	present(t, &abacus{Backend: cpu.New(1), free: roomy8G}, nil)
	for _, test := range []struct {
		device         string
		parallel, want int
	}{{"cpu", 0, 16}, {"abacus", 0, 64}, {"abacus", 3, 3}, {"cpu", 3, 3}} {
		m, err := Open(t.Context(), modeltest.Llama(t), Options{Device: test.device, Parallel: test.parallel})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Parallel(); got != test.want {
			t.Errorf("%d answers at one time on %s, want %d", got, test.device, test.want)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A prompt that is longer than the context is an error with its length, which is exact unless the
// prompt is many times too long. Tokenizing ends when ctx is cancelled.
func TestLongPrompt(t *testing.T) {
	m, err := Open(t.Context(), modeltest.Llama(t, modeltest.Context(64)), Options{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close() //nolint:errcheck // that is tested elsewhere
	var long *ContextError
	for _, words := range []int{100, 100000} {
		text := strings.Repeat("hello ", words)
		ids, err := m.Prompt(t.Context(), &Request{Prompt: text}, 0)
		if err != nil || len(ids.Tokens) <= m.Context() {
			t.Fatalf("%d tokens, %v", len(ids.Tokens), err)
		}
		_, err = m.Prompt(t.Context(), &Request{Prompt: text}, m.Context())
		if !errors.As(err, &long) || long.Context != 64 || long.Prompt <= 64 || long.Prompt > len(ids.Tokens) || !long.More && long.Prompt != len(ids.Tokens) || long.More != (words > 1000) {
			t.Errorf("of %d tokens: %v", len(ids.Tokens), err)
		}
		if _, err := m.Prompt(t.Context(), &Request{PromptTokens: ids.Tokens}, 64); !errors.As(err, &long) || long.Prompt != len(ids.Tokens) || long.More {
			t.Errorf("of %d ids: %v", len(ids.Tokens), err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Prompt(ctx, &Request{Prompt: strings.Repeat("hello ", 100000)}, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
	b := budget.New(1 << 20)
	account := b.Open("", func() {})
	if _, err := m.Prompt(budget.With(t.Context(), account), &Request{Prompt: strings.Repeat("a", 1<<20)}, 0); !errors.Is(err, budget.ErrFull) {
		t.Errorf("without memory: %v", err)
	}
	if held := account.Held(); held != 0 {
		t.Errorf("%d bytes are held", held)
	}
}
