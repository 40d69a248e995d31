package realizar

import (
	"context"
	"fmt"
	"time"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/tokenizer"
)

// A Prompt is what the model runs for a request.
type Prompt struct {
	// Text is a conversation as the model's chat template writes it. Its spans say what
	// the template wrote and what the caller did. nil of a request without one.
	Text   chat.Text
	Tokens []int32
	// Render and Tokenize are the times that the template and the tokenizer took.
	Render, Tokenize time.Duration
}

// Prompt is the prompt that [Model.Generate] runs for r. It may be longer than the context.
func (m *Model) Prompt(r *Request) (Prompt, error) {
	if r.PromptTokens != nil {
		if r.Prompt != "" {
			return Prompt{}, fmt.Errorf("realizar: %w: both a prompt and prompt tokens", ErrRequest)
		}
		return Prompt{Tokens: r.PromptTokens}, checkTokens("prompt token", r.PromptTokens, m.Vocab())
	}
	tok, err := m.Tokenizer()
	if err != nil {
		return Prompt{}, wrap(err)
	}
	begun := time.Now()
	ids := tok.EncodeSpans([]tokenizer.Span{{Text: r.Prompt, Special: r.Special}}, true)
	if bos, ok := tok.BOS(); ok && tok.AddsBOS() && len(ids) > 1 && ids[0] == bos && ids[1] == bos {
		ids = ids[1:] // the prompt has one already
	}
	return Prompt{Tokens: ids, Tokenize: time.Since(begun)}, checkTokens("prompt token", ids, m.Vocab())
}

// ChatPrompt is the prompt that [Model.Chat] runs for r. It may be longer than the
// context. Special tokens match only in what the template wrote. Where the tokenizer
// begins every text with a token, the prompt has it once, whether or not the template
// wrote it. A template that is still at work when ctx ends is stopped. An error of the
// tokenizer comes with the Text.
func (m *Model) ChatPrompt(ctx context.Context, r *ChatRequest) (Prompt, error) {
	begun := time.Now()
	text, err := m.render(ctx, r)
	if err != nil {
		return Prompt{}, err
	}
	p := Prompt{Text: text, Render: time.Since(begun)}
	tok, err := m.Tokenizer()
	if err != nil {
		return p, wrap(err)
	}
	begun = time.Now()
	spans := make([]tokenizer.Span, len(text))
	for i, s := range text {
		spans[i] = tokenizer.Span{Text: s.Text, Special: !s.Caller}
	}
	p.Tokens = tok.EncodeSpans(spans, false)
	if bos, ok := tok.BOS(); ok && tok.AddsBOS() && (len(p.Tokens) == 0 || p.Tokens[0] != bos) {
		p.Tokens = append([]int32{bos}, p.Tokens...)
	}
	p.Tokenize = time.Since(begun)
	return p, checkTokens("prompt token", p.Tokens, m.Vocab())
}

// render is the text that the model's chat template makes of r.
func (m *Model) render(ctx context.Context, r *ChatRequest) (chat.Text, error) {
	if m.arch.Program.Whole {
		return nil, m.unsuited("a conversation")
	}
	t, err := m.template(len(r.Tools) > 0)
	if err != nil {
		return nil, wrap(err)
	}
	if len(r.Tools) > 0 && !t.TakesTools() {
		return nil, fmt.Errorf("realizar: %w: %d tools, but the model's chat template takes none", ErrRequest, len(r.Tools))
	}
	now := r.Now
	if now.IsZero() {
		now = time.Now()
	}
	text, err := t.Render(ctx, &chat.Request{
		Messages: r.Messages, Tools: r.Tools, Documents: r.Documents, Vars: r.Vars,
		Special: m.specialNames, Now: func() time.Time { return now },
	})
	if err != nil {
		return nil, wrap(err)
	}
	return text, nil
}

// checkPrompt refuses a prompt that cannot be run.
func (m *Model) checkPrompt(ids []int32) error {
	if len(ids) == 0 {
		return fmt.Errorf("realizar: %w: the prompt is empty and the tokenizer adds nothing to it", ErrRequest)
	}
	if len(ids) > m.Context() {
		return fmt.Errorf("realizar: %w", &ContextError{Prompt: len(ids), Context: m.Context()})
	}
	return nil
}

// checkTokens refuses ids that the model does not have.
func checkTokens(what string, ids []int32, vocab int) error {
	for i, id := range ids {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("realizar: %w: %s %d at index %d is outside the vocabulary of %d", ErrRequest, what, id, i, vocab)
		}
	}
	return nil
}
