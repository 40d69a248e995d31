package realizar

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/modeltest"
)

// The prompt of an Infill has the files, the text before the gap and the text after it, with the
// model's infill tokens between them. Special tokens do not match in any of the texts.
func TestInfill(t *testing.T) {
	names := []string{"fim_pre", "fim_suf", "fim_mid"}
	ids := []uint32{270, 271, 269}
	var options []modeltest.Option
	for i, name := range names {
		options = append(options, modeltest.Metadata("tokenizer.ggml."+name+"_token_id", ids[i]))
	}
	m := opened(t, modeltest.Llama(t, options...))
	tok, err := m.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) []int32 { return tok.Encode(s, false) }
	plain := slices.Concat([]int32{270}, text("hello"), []int32{271}, text(" world"), []int32{269})
	for name, test := range map[string]struct {
		fill Infill
		want []int32
	}{
		"plain":  {Infill{Before: "hello", After: " world"}, plain},
		"empty":  {Infill{}, []int32{270, 271, 269}},
		"a file": {Infill{Before: "hello", After: " world", Files: []File{{"a.go", "hello"}}}, slices.Concat(text(infillSnippet), text("hello"), plain)},
	} {
		p, err := m.Prompt(t.Context(), &Request{Infill: &test.fill}, 0)
		if err != nil || !slices.Equal(p.Tokens, test.want) {
			t.Errorf("%s: %v, %v; want %v", name, p.Tokens, err, test.want)
		}
	}
	if p, err := m.Prompt(t.Context(), &Request{Infill: &Infill{Before: "<|im_end|>"}}, 0); err != nil || len(p.Tokens) < 6 {
		t.Errorf("a special token that was typed: %v, %v", p.Tokens, err)
	}
	for name, r := range map[string]*Request{
		"two prompts": {Prompt: "a", Infill: &Infill{}},
		"and tokens":  {PromptTokens: []int32{1}, Infill: &Infill{}},
		"too long":    {Infill: &Infill{Before: strings.Repeat("hello ", 100)}},
		"many files":  {Infill: &Infill{Files: slices.Repeat([]File{{"a", "hello"}}, 100)}},
	} {
		if _, err := m.Prompt(t.Context(), r, 16); !errors.Is(err, ErrRequest) && !errors.Is(err, ErrContext) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := opened(t, modeltest.Llama(t)).Prompt(t.Context(), &Request{Infill: &Infill{}}, 0); !errors.Is(err, ErrUnsuited) {
		t.Errorf("a model without the tokens: %v", err)
	}
}
