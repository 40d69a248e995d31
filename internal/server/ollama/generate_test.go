package ollama_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// qwenTemplate has a default system message, reasoning that can be disabled, and tools.
const qwenTemplate = `{%- if messages[0].role != 'system' %}<|im_start|>system
Be good.<|im_end|>
{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

func generateBody(prompt, more string) string {
	return fmt.Sprintf(`{"model":"small","prompt":%q,"stream":false,"options":{"temperature":0,"num_predict":9}%s}`, prompt, more)
}

func TestGenerate(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(qwenTemplate))
	greedy := realizar.Generation{MaxTokens: new(9)}
	want, end := said(t, s.model, &realizar.ChatRequest{Generation: greedy})
	a := s.post("/api/generate", generateBody("hello", "")).whole(t)
	if a.Message != nil || a.text() != want || a.Prompt != end.Usage.PromptTokens || a.Count != 9 || a.DoneReason != "length" {
		t.Errorf("%+v, want %q", a, want)
	}
	all, text := s.post("/api/generate", strings.Replace(generateBody("hello", ""), `"stream":false`, `"stream":true`, 1)).lines(t)
	if last := all[len(all)-1]; text != want || !slices.Equal(last.Context, a.Context) || last.Count != 9 {
		t.Errorf("%q, want %q; %+v", text, want, last)
	}
	messages := []chat.Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "hello"}}
	want, _ = said(t, s.model, &realizar.ChatRequest{Messages: messages, Generation: greedy})
	if got := s.post("/api/generate", generateBody("hello", `,"system":"Be brief."`)).whole(t); got.text() != want {
		t.Errorf("%q, want %q", got.text(), want)
	}
}

// TestGenerateSuffix checks infilling, with a model that has tokens for it.
func TestGenerateSuffix(t *testing.T) {
	var options []modeltest.Option
	for name, id := range map[string]uint32{"fim_pre": 270, "fim_suf": 271, "fim_mid": 269} {
		options = append(options, modeltest.Metadata("tokenizer.ggml."+name+"_token_id", id))
	}
	s := serve(t, server.Config{}, append(options, modeltest.Template(qwenTemplate))...)
	for prompt, suffix := range map[string]string{"hello": " world", "": " world"} {
		var want string
		for e, err := range s.model.Generate(t.Context(), &realizar.Request{Infill: &realizar.Infill{Before: prompt, After: suffix}, Generation: realizar.Generation{MaxTokens: new(9)}}) {
			if err != nil {
				t.Fatal(err)
			}
			want += e.Text
		}
		a := s.post("/api/generate", generateBody(prompt, fmt.Sprintf(`,"suffix":%q`, suffix))).whole(t)
		if a.text() != want || a.Count != 9 || a.Context != nil {
			t.Errorf("%q and %q: %+v, want %q", prompt, suffix, a, want)
		}
	}
	if able := s.show("").Capabilities; !slices.Equal(able, []string{"completion", "insert"}) {
		t.Errorf("the model can do %q", able)
	}
	for _, more := range []string{`"raw":true`, `"system":"Be brief."`, `"context":[1]`, `"think":true`} {
		if r := s.post("/api/generate", generateBody("hello", `,"suffix":"b",`+more)); r.status != 400 {
			t.Errorf("%s: %d %s", more, r.status, r.body)
		}
	}
}

// TestRaw checks that a raw prompt is taken literally, with special tokens.
func TestRaw(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(qwenTemplate), modeltest.AddBOS())
	const prompt = "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
	var want string
	var tokens int
	for e, err := range s.model.Generate(t.Context(), &realizar.Request{Prompt: prompt, Special: true, Generation: realizar.Generation{MaxTokens: new(9)}}) {
		if err != nil {
			t.Fatal(err)
		}
		if want += e.Text; e.Finish != nil {
			tokens = e.Finish.Usage.PromptTokens
		}
	}
	if a := s.post("/api/generate", generateBody(prompt, `,"raw":true`)).whole(t); a.text() != want || a.Prompt != tokens || a.Context != nil {
		t.Errorf("%+v, want %q of %d", a, want, tokens)
	}
}

// TestContext checks that prompts made from contexts equal those made from messages.
func TestContext(t *testing.T) {
	for _, options := range [][]modeltest.Option{nil, {modeltest.Template(qwenTemplate)}, {modeltest.Template(qwenTemplate), modeltest.AddBOS()}} {
		s := serve(t, server.Config{}, append(options, modeltest.Context(1024))...)
		var messages []chat.Message
		var context []int32
		for turn, prompt := range []string{"hello", "and <|im_end|> then?", "so"} {
			more := ""
			if turn > 0 {
				ids, _ := json.Marshal(context)
				more = `,"context":` + string(ids)
			}
			messages = append(messages, chat.Message{Role: "user", Content: prompt})
			r := &realizar.ChatRequest{Messages: messages, Generation: realizar.Generation{MaxTokens: new(9)}}
			want, err := s.model.ChatPrompt(t.Context(), r, 0)
			if err != nil {
				t.Fatal(err)
			}
			a := s.post("/api/generate", generateBody(prompt, more)).whole(t)
			tok, _ := s.model.Tokenizer()
			if a.Prompt != len(want.Tokens) {
				t.Errorf("turn %d: a prompt of %d tokens, want the %d of %q", turn, a.Prompt, len(want.Tokens), want.Text)
			}
			if text := want.Text.String() + a.text(); tok.Decode(a.Context, false) != text && tok.Decode(a.Context[1:], false) != text {
				t.Errorf("turn %d: the context is %q, want %q", turn, tok.Decode(a.Context, false), text)
			}
			messages, context = append(messages, chat.Message{Role: "assistant", Content: a.text()}), a.Context
		}
	}
}

// TestNoContext checks that if a template does not write answers, there is no context and none is
// accepted.
func TestNoContext(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(`{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}`))
	if a := s.post("/api/generate", generateBody("hello", "")).whole(t); a.Context != nil {
		t.Errorf("%+v", a)
	}
	s.post("/api/generate", generateBody("hello", `,"context":[1,2]`)).fails(t, 400, "context cannot be continued", "/api/chat")
	s = serve(t, server.Config{}, modeltest.Template(`{% if messages | length > 1 %}{{ raise_exception('one alone') }}{% endif %}{{ messages[0].content }}`))
	if a := s.post("/api/generate", generateBody("hello", "")).whole(t); a.Context != nil {
		t.Errorf("%+v", a)
	}
}

// TestNoTemplate checks that a model without a template continues the prompt.
func TestNoTemplate(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template("{% broken"))
	a := s.post("/api/generate", generateBody("hello", "")).whole(t)
	var want string
	for e, err := range s.model.Generate(t.Context(), &realizar.Request{Prompt: "hello", Generation: realizar.Generation{MaxTokens: new(9)}}) {
		if err != nil {
			t.Fatal(err)
		}
		want += e.Text
	}
	if a.text() != want {
		t.Errorf("%q, want %q", a.text(), want)
	}
	ids, _ := json.Marshal(a.Context)
	b := s.post("/api/generate", generateBody("and", `,"context":`+string(ids))).whole(t)
	if b.Prompt <= len(a.Context) || !slices.Equal(b.Context[:len(a.Context)], a.Context) {
		t.Errorf("%+v behind %+v", b, a)
	}
	s.post("/api/generate", generateBody("hello", `,"system":"b"`)).fails(t, 400, "no chat template")
	s.post("/api/chat", chatBody("")).fails(t, 422, "no usable chat template")
}
