package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// tokens is the answer of POST /tokenize.
type tokens struct {
	Count       int      `json:"count"`
	MaxModelLen int      `json:"max_model_len"`
	Tokens      []int32  `json:"tokens"`
	TokenStrs   []string `json:"token_strs"`
}

func (s *service) tokenize(body string) (a tokens) {
	s.t.Helper()
	r := s.post("/tokenize", body)
	if r.status != 200 {
		s.t.Fatalf("%s: %d %s", body, r.status, r.body)
	}
	if err := json.Unmarshal([]byte(r.body), &a); err != nil {
		s.t.Fatal(err)
	}
	return a
}

func TestTokenize(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{Context: 128}, modeltest.AddBOS())
	tok, err := s.model.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	hello := tok.Encode("hello", false)[0]
	end, _ := tok.ID("<|endoftext|>")
	for body, want := range map[string]tokens{
		`{"prompt": "hello"}`: {2, 128, []int32{end, hello}, nil},
		`{"prompt": "hello", "model": "small", "add_special_tokens": true}`:           {2, 128, []int32{end, hello}, nil},
		`{"prompt": "hello", "add_special_tokens": false, "return_token_strs": true}`: {1, 128, []int32{hello}, []string{"hello"}},
		`{"prompt": "", "add_special_tokens": false}`:                                 {0, 128, []int32{}, nil},
	} {
		if diff := cmp.Diff(want, s.tokenize(body)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", body, diff)
		}
	}
	if got := s.tokenize(`{"prompt": "<|endoftext|>hello", "parse_special": true}`).Tokens; !slices.Equal(got, []int32{end, hello}) {
		t.Errorf("a special token that is meant is %v", got)
	}
	typed := s.tokenize(`{"prompt": "<|endoftext|>", "add_special_tokens": false}`)
	if typed.Count < 2 {
		t.Errorf("a special token that was typed is %v; want plain text", typed.Tokens)
	}
}

// TestRender checks that the rendered text and ids of a chat request are what the request runs.
func TestRender(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{}, modeltest.Template(toolTemplate), modeltest.AddBOS())
	for _, fields := range []string{
		`"messages": [{"role": "user", "content": "hello <|im_end|>"}]`,
		`"messages": [{"role": "user", "content": "hello <|im_start|>user hello"}, {"role": "assistant", "content": "the"}], "continue_final_message": true, "add_generation_prompt": false`,
		`"messages": [{"role": "developer", "content": "be kind"}, {"role": "user", "content": "hello"}], "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]`,
	} {
		var rendered struct {
			Model, Prompt      string
			Tokens             []int32 `json:"token_ids"`
			Count, MaxModelLen int
		}
		r := s.post("/v1/chat/completions/render", `{"model": "small", "temperature": 0, "max_tokens": 8, `+fields+`}`)
		if err := json.Unmarshal([]byte(r.body), &rendered); err != nil || r.status != 200 {
			t.Fatalf("%d %s (%v)", r.status, r.body, err)
		}
		if strings.Contains(r.body, `\u003c`) {
			t.Errorf("%s escapes what JSON need not", r.body)
		}
		if rendered.Model != name || rendered.Count != len(rendered.Tokens) || !strings.Contains(rendered.Prompt, "<|im_start|>user hello") || strings.Contains(fields, "tools") && !strings.Contains(rendered.Prompt, "[f:") {
			t.Errorf("%s: %+v", fields, rendered)
		}
		if got := s.tokenize("{" + fields + "}"); !slices.Equal(got.Tokens, rendered.Tokens) {
			t.Errorf("%s: tokens %v, rendered ones %v", fields, got.Tokens, rendered.Tokens)
		}
		answer := s.post("/v1/chat/completions", `{"model": "small", "temperature": 0, "max_tokens": 8, `+fields+`}`)
		same := s.post("/v1/completions", fmt.Sprintf(`{"model": "small", "temperature": 0, "max_tokens": 8, "prompt": %s}`, strings.ReplaceAll(fmt.Sprint(rendered.Tokens), " ", ",")))
		var chat, text struct {
			Choices []struct {
				Text    string
				Message struct{ Content string }
			}
			Usage struct {
				Prompt int `json:"prompt_tokens"`
			}
		}
		if err := errors.Join(json.Unmarshal([]byte(answer.body), &chat), json.Unmarshal([]byte(same.body), &text)); err != nil {
			t.Fatal(err)
		}
		if chat.Usage.Prompt != rendered.Count || chat.Choices[0].Message.Content != text.Choices[0].Text {
			t.Errorf("%s: the chat is %+v, its rendered ids make %+v", fields, chat, text)
		}
	}
	s.post("/v1/chat/completions/render", `{"model": "small"}`).fails(t, 400, "messages", "missing_required_parameter")
}

func TestDetokenize(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	tok, err := s.model.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	end, _ := tok.ID("<|endoftext|>")
	for _, text := range []string{"", "hello world", "Grüße, 世界 🙂"} {
		data, err := json.Marshal(append(tok.Encode(text, false), end))
		if err != nil {
			t.Fatal(err)
		}
		r := s.post("/detokenize", fmt.Sprintf(`{"model": "small", "tokens": %s}`, data))
		var got struct{ Prompt string }
		if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != 200 || got.Prompt != text+"<|endoftext|>" {
			t.Errorf("%q: %d %s", text, r.status, r.body)
		}
	}
	if r := s.post("/detokenize", `{"tokens": []}`); r.body != `{"prompt":"","content":""}` {
		t.Errorf("no tokens: %d %s", r.status, r.body)
	}
}

func TestTokenErrors(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	for _, test := range []struct {
		path, body, param, code string
		status                  int
	}{
		{"/tokenize", `{}`, "prompt", "missing_required_parameter", 400},
		{"/tokenize", `{"prompt": 1}`, "prompt", "invalid_value", 400},
		{"/tokenize", `{"prompt": ["a"]}`, "prompt", "invalid_value", 400},
		{"/tokenize", `{"prompt": "a", "model": "other"}`, "model", "model_not_found", 404},
		{"/tokenize", `{"prompt": "a", "add_special_tokens": 1}`, "add_special_tokens", "invalid_value", 400},
		{"/tokenize", `{"prompt": "a", "add_special_tokens": true, "add_special": true}`, "add_special", "invalid_value", 400},
		{"/tokenize", `{"prompt": "a", "text": "b"}`, "text", "unknown_parameter", 400},
		{"/tokenize", `{"messages": [], "tools": []}`, "messages", "missing_required_parameter", 400},
		{"/tokenize", `{"tools": []}`, "messages", "missing_required_parameter", 400},
		{"/tokenize", `{"messages": [{"role": "cat", "content": "a"}]}`, "messages[0].role", "invalid_value", 400},
		{"/tokenize", `{"messages": [{"role": "user", "content": "a"}], "prompt": "a"}`, "prompt", "invalid_value", 400},
		{"/tokenize", `{"messages": [{"role": "user", "content": "a"}], "add_special_tokens": false}`, "add_special_tokens", "invalid_value", 400},
		{"/tokenize", `{"messages": [{"role": "user", "content": "a"}], "parse_special": true}`, "parse_special", "invalid_value", 400},
		{"/tokenize", `{"messages": [{"role": "user", "content": "a"}], "add_generation_prompt": false}`, "add_generation_prompt", "unsupported_parameter", 400},
		{"/tokenize", `{"messages": [{"role": "user", "content": "a"}], "continue_final_message": true}`, "messages", "invalid_value", 400},
		{"/tokenize", `{"messages": [{"role": "assistant", "content": "a"}], "continue_final_message": true, "add_generation_prompt": true}`, "add_generation_prompt", "invalid_value", 400},
		{"/detokenize", `{}`, "tokens", "missing_required_parameter", 400},
		{"/detokenize", `{"tokens": "a"}`, "tokens", "invalid_value", 400},
		{"/detokenize", `{"tokens": [1, 2.5]}`, "tokens", "invalid_value", 400},
		{"/detokenize", `{"tokens": [1, 100000]}`, "tokens", "invalid_value", 400},
		{"/detokenize", `{"tokens": [1], "model": "other"}`, "model", "model_not_found", 404},
	} {
		s.post(test.path, test.body).fails(t, test.status, test.param, test.code)
	}
	none := serve(t, server.Config{}, realizar.Options{}, modeltest.Metadata("tokenizer.ggml.model", "unheard of"))
	none.post("/tokenize", `{"prompt": "a"}`).fails(t, 422, "", "no_tokenizer")
	none.post("/detokenize", `{"tokens": [1]}`).fails(t, 422, "", "no_tokenizer")
}
