package realizar_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/modeltest"
)

// thoughtTemplate writes reasoning before each answer, which may be empty.
const thoughtTemplate = `{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
<think>
{% endif %}`

// An answer with Continue is the model's continuation of the last message, all of which is text.
func TestContinue(t *testing.T) {
	m := open(t, realizar.Options{}, modeltest.Template(thoughtTemplate))
	greedy := realizar.Generation{MaxTokens: new(8), IgnoreEnd: true}
	asked := []chat.Message{{Role: "user", Content: "hello"}, {Role: "assistant", Content: "the world is"}}
	p, err := m.ChatPrompt(t.Context(), &realizar.ChatRequest{Messages: asked, Continue: true}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if text := p.Text.String(); !strings.HasSuffix(text, "<|im_start|>assistant\n<think>\n\n</think>\n\nthe world is") {
		t.Errorf("the prompt is %q", text)
	}
	want := generate(t, m, realizar.Request{PromptTokens: p.Tokens, Generation: greedy})
	got, err := collect(m.Chat(t.Context(), &realizar.ChatRequest{Messages: asked, Continue: true, Generation: greedy}))
	if err != nil || got.text != want.text || !slices.Equal(got.tokens, want.tokens) {
		t.Errorf("%q, want %q (%v)", got.text, want.text, err)
	}
	g, err := realizar.Regexp(` very (small|old)`)
	if err != nil {
		t.Fatal(err)
	}
	got, err = collect(m.Chat(t.Context(), &realizar.ChatRequest{Messages: asked, Continue: true, Generation: realizar.Generation{Grammar: g}}))
	if err != nil || got.text != " very small" && got.text != " very old" {
		t.Errorf("%q (%v)", got.text, err)
	}
}

func TestContinueErrors(t *testing.T) {
	m := open(t, realizar.Options{}, modeltest.Template(thoughtTemplate))
	user, assistant := chat.Message{Role: "user", Content: "hello"}, chat.Message{Role: "assistant", Content: "the"}
	calls := chat.Message{Role: "assistant", ToolCalls: []chat.ToolCall{{Name: "f"}}}
	for name, r := range map[string]realizar.ChatRequest{
		"no message":    {},
		"of a user":     {Messages: []chat.Message{user}},
		"calls":         {Messages: []chat.Message{user, calls}},
		"a thought":     {Messages: []chat.Message{user, assistant}, Effort: "low"},
		"some thought":  {Messages: []chat.Message{user, assistant}, ThinkingTokens: new(5)},
		"required call": {Messages: []chat.Message{user, assistant}, Tools: []chat.Tool{{Name: "f"}}, ToolChoice: realizar.ToolChoice{Mode: realizar.ToolRequired}},
	} {
		r.Continue = true
		if _, err := m.ChatPrompt(t.Context(), &r, 0); !errors.Is(err, realizar.ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	none := realizar.ChatRequest{Messages: []chat.Message{user, assistant}, Continue: true, Effort: "none", ThinkingTokens: new(0)}
	if _, err := m.ChatPrompt(t.Context(), &none, 0); err != nil {
		t.Error(err)
	}
}
