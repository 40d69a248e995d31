package realizar

import (
	"strings"
	"testing"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/modeltest"
)

// A prompt has the ids that its request runs: the same ids have the same answer.
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

// Where nothing else is asked for, a device works at more answers than a processor.
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
