package realizar_test

import (
	"testing"

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

// TestEncodeChat: a rendered conversation has the ids that Chat runs.
func TestEncodeChat(t *testing.T) {
	m := open(t, realizar.Options{})
	r := &realizar.ChatRequest{
		Messages: []chat.Message{{Role: "user", Content: "hello <|im_end|> world"}}, Generation: realizar.Generation{MaxTokens: new(8), IgnoreEnd: true},
	}
	text, err := m.RenderChat(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	prompt, err := m.EncodeChat(text)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := collect(m.Chat(t.Context(), r))
	if err != nil {
		t.Fatal(err)
	}
	same := generate(t, m, realizar.Request{PromptTokens: prompt, Generation: r.Generation})
	if asked.text != same.text || asked.finish.Usage.PromptTokens != len(prompt) {
		t.Errorf("%q of %+v, but %q of %+v", asked.text, asked.finish.Usage, same.text, same.finish.Usage)
	}
}
