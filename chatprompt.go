package realizar

import (
	"context"
	"fmt"
	"time"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/tokenizer"
)

// RenderChat is the prompt that the model's chat template makes of r. Its spans
// say what the template wrote and what the caller did. A template that is still
// at work when ctx ends is stopped.
func (m *Model) RenderChat(ctx context.Context, r *ChatRequest) (chat.Text, error) {
	if m.arch.Program.Whole {
		return nil, m.unsuited("a conversation")
	}
	t, err := m.template(len(r.Tools) > 0)
	if err != nil {
		return nil, fmt.Errorf("realizar: %w", err)
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
		return nil, fmt.Errorf("realizar: %w", err)
	}
	return text, nil
}

// EncodeChat is a rendered conversation as the ids that [Model.Chat] runs. Special
// tokens match only in what the template wrote. Where the tokenizer begins every
// text with a token, the prompt has it once, whether or not the template wrote it.
func (m *Model) EncodeChat(text chat.Text) ([]int32, error) {
	tok, err := m.Tokenizer()
	if err != nil {
		return nil, fmt.Errorf("realizar: %w", err)
	}
	spans := make([]tokenizer.Span, len(text))
	for i, s := range text {
		spans[i] = tokenizer.Span{Text: s.Text, Special: !s.Caller}
	}
	ids := tok.EncodeSpans(spans, false)
	if bos, ok := tok.BOS(); ok && tok.AddsBOS() && (len(ids) == 0 || ids[0] != bos) {
		ids = append([]int32{bos}, ids...)
	}
	return ids, checkTokens("prompt token", ids, m.Vocab())
}

// ChatTokens are the ids that [Model.Chat] runs for r.
func (m *Model) ChatTokens(ctx context.Context, r *ChatRequest) ([]int32, error) {
	if _, err := m.Tokenizer(); err != nil {
		return nil, fmt.Errorf("realizar: %w", err)
	}
	text, err := m.RenderChat(ctx, r)
	if err != nil {
		return nil, err
	}
	return m.EncodeChat(text)
}
