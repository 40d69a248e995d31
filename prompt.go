package realizar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/budget"
	"github.com/realizar/realizar/tokenizer"
)

// A Prompt is the input of the model for a request.
type Prompt struct {
	// Text is the conversation as the model's chat template renders it. Its spans tell the text of
	// the template from the text of the caller. It is nil for a [Request].
	Text chat.Text
	// Tokens are the token ids of the prompt.
	Tokens []int32
	// Render and Tokenize are the times that the template and the tokenizer took.
	Render, Tokenize time.Duration

	turn *conversation // nil for a Request
}

// Prompt returns the prompt that [Model.Generate] runs for r, without running it. If most is not 0,
// a prompt of more than most tokens is a [*ContextError]; otherwise it may be longer than the
// context. Prompt returns soon after ctx is done.
func (m *Model) Prompt(ctx context.Context, r *Request, most int) (Prompt, error) {
	if r.Prepared != nil {
		if r.Prompt != "" || r.PromptTokens != nil || r.Infill != nil {
			return Prompt{}, fmt.Errorf("realizar: %w: both Prepared and another prompt; want one of them", ErrRequest)
		}
		return *r.Prepared, nil
	}
	if r.PromptTokens != nil {
		if r.Prompt != "" || r.Infill != nil {
			return Prompt{}, fmt.Errorf("realizar: %w: both PromptTokens and another prompt; want one of them", ErrRequest)
		}
		if most > 0 && len(r.PromptTokens) > most {
			return Prompt{}, fmt.Errorf("realizar: %w", &ContextError{Prompt: len(r.PromptTokens), Context: most})
		}
		return Prompt{Tokens: r.PromptTokens}, checkTokens("prompt token", r.PromptTokens, m.Vocab())
	}
	tok, err := m.Tokenizer()
	if err != nil {
		return Prompt{}, wrap(err)
	}
	if r.Infill != nil {
		if r.Prompt != "" {
			return Prompt{}, fmt.Errorf("realizar: %w: both Infill and Prompt; want one of them", ErrRequest)
		}
		return m.infill(ctx, tok, r, most)
	}
	begun := time.Now()
	ids, err := tok.EncodeWithin(ctx, limitsOf(ctx, most), []tokenizer.Span{{Text: r.Prompt, Special: r.Special}}, !r.Plain)
	if err != nil {
		return Prompt{}, tooLong(err, most)
	}
	if bos, ok := tok.BOS(); ok && !r.Plain && tok.AddsBOS() && len(ids) > 1 && ids[0] == bos && ids[1] == bos {
		ids = ids[1:] // the prompt has one already
	}
	if most > 0 && len(ids) > most {
		return Prompt{}, fmt.Errorf("realizar: %w", &ContextError{Prompt: len(ids), Context: most})
	}
	return Prompt{Tokens: ids, Tokenize: time.Since(begun)}, checkTokens("prompt token", ids, m.Vocab())
}

// A prompt that is too long is tokenized up to countedContexts times its limit, or countedTokens if
// that is more. So the error has the exact length of most such prompts, at a bounded cost.
const (
	countedContexts = 4
	countedTokens   = 16 << 10
)

// limitsOf returns the tokenizer's limits for a text that may have most tokens; 0 is no limit.
func limitsOf(ctx context.Context, most int) tokenizer.Limits {
	var l tokenizer.Limits
	if most > 0 {
		l.Tokens = max(countedContexts*most, countedTokens)
	}
	if account := budget.Of(ctx); account != nil {
		l.Reserve = account.ReserveInt
	}
	return l
}

// tooLong turns the tokenizer's [*tokenizer.LengthError] into a [*ContextError] for a limit of most
// tokens. It returns other errors wrapped.
func tooLong(err error, most int) error {
	var long *tokenizer.LengthError
	if errors.As(err, &long) {
		err = &ContextError{Prompt: long.Least, Context: most, More: true}
	}
	return wrap(err)
}

// ChatPrompt returns the prompt that [Model.Chat] runs for r, without running it. If most is not 0,
// a prompt of more than most tokens is a [*ContextError]; otherwise it may be longer than the
// context. Special tokens match only in the template's own text, never in the caller's. If the
// tokenizer begins every text with a token, the prompt has this token once, even if the template
// writes it too. If tokenizing fails, the returned Prompt still has its Text. ChatPrompt returns
// soon after ctx is done.
func (m *Model) ChatPrompt(ctx context.Context, r *ChatRequest, most int) (Prompt, error) {
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
	if p.Tokens, err = tok.EncodeWithin(ctx, limitsOf(ctx, most), spans, false); err != nil {
		return p, tooLong(err, most)
	}
	if bos, ok := tok.BOS(); ok && tok.AddsBOS() && (len(p.Tokens) == 0 || p.Tokens[0] != bos) {
		p.Tokens = append([]int32{bos}, p.Tokens...)
	}
	p.Tokenize = time.Since(begun)
	if p.turn, err = m.converse(r, text); err != nil {
		return p, err
	}
	if most > 0 && len(p.Tokens) > most {
		return p, fmt.Errorf("realizar: %w", &ContextError{Prompt: len(p.Tokens), Context: most})
	}
	return p, checkTokens("prompt token", p.Tokens, m.Vocab())
}

// render returns r's conversation as the model's chat template writes it.
func (m *Model) render(ctx context.Context, r *ChatRequest) (chat.Text, error) {
	if m.arch.Program.Whole {
		return nil, m.unsuited("a conversation")
	}
	if err := r.checkContinue(); err != nil {
		return nil, err
	}
	t, err := m.template(len(r.Tools) > 0)
	if err != nil {
		return nil, wrap(err)
	}
	tools := r.Tools
	if r.ToolChoice.Mode == ToolNone {
		tools = nil
	}
	if len(tools) > 0 && !t.TakesTools() {
		return nil, fmt.Errorf("realizar: %w: %d tools, but the model's chat template takes none; leave them out", ErrRequest, len(r.Tools))
	}
	now := r.Now
	if now.IsZero() {
		now = time.Now()
	}
	f, err := m.form(len(tools) > 0)
	if err != nil {
		return nil, err
	}
	vars, err := r.vars(t, f)
	if err != nil {
		return nil, err
	}
	c := &chat.Request{
		Messages: r.Messages, Tools: tools, ContinueFinal: r.Continue, Documents: r.Documents, Vars: vars,
		Special: m.specialNames, Now: func() time.Time { return now },
	}
	made := 0 // bytes reserved while the template renders
	account := budget.Of(ctx)
	if account != nil {
		c.Reserve = func(bytes int) error {
			if err := account.ReserveInt(bytes); err != nil {
				return err
			}
			made += bytes
			return nil
		}
	}
	text, err := t.Render(ctx, c)
	// Only the memory of the text stays reserved.
	stays := 0
	for _, s := range text {
		stays += len(s.Text)
	}
	_ = account.ReserveInt(min(stays, made) - made) // a negative reservation never fails
	if err != nil {
		return nil, wrap(err)
	}
	return text, nil
}

// checkContinue returns an error if r.Continue is set and other fields of r exclude it.
func (r *ChatRequest) checkContinue() error {
	if !r.Continue {
		return nil
	}
	bad := func(format string, a ...any) error {
		return fmt.Errorf("realizar: %w: %s", ErrRequest, fmt.Sprintf(format, a...))
	}
	switch last := len(r.Messages) - 1; {
	case last < 0:
		return bad("there is no message to continue; want an assistant's message, or Continue false")
	case r.Messages[last].Role != "assistant":
		return bad("the message to continue has the role %.50q; want assistant", r.Messages[last].Role)
	case len(r.Messages[last].ToolCalls) > 0:
		return bad("the message to continue calls tools; want a message of text alone")
	case r.ToolChoice.Mode == ToolRequired || r.ToolChoice.Mode == ToolNamed:
		return bad("a tool call is required, but the answer continues a message; want tool choice auto or none")
	case r.Effort != "" && r.Effort != "none", r.ThinkingTokens != nil && *r.ThinkingTokens > 0:
		return bad("reasoning is asked for, but an answer that continues a message has none; want effort none")
	}
	return nil
}

// checkPrompt returns an error if a prompt is empty or exceeds the context.
func (m *Model) checkPrompt(ids []int32) error {
	if len(ids) == 0 {
		return fmt.Errorf("realizar: %w: the prompt is empty; want at least one token", ErrRequest)
	}
	if len(ids) > m.Context() {
		return fmt.Errorf("realizar: %w", &ContextError{Prompt: len(ids), Context: m.Context()})
	}
	return nil
}

// checkTokens returns an error if an id is outside the vocabulary.
func checkTokens(what string, ids []int32, vocab int) error {
	for i, id := range ids {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("realizar: %w: %s %d at index %d is outside the vocabulary of %d", ErrRequest, what, id, i, vocab)
		}
	}
	return nil
}
