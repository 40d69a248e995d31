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

// A Prompt is what the model runs for a request.
type Prompt struct {
	// Text is a conversation as the model's chat template writes it. Its spans say what
	// the template wrote and what the caller did. nil of a request without one.
	Text   chat.Text
	Tokens []int32
	// Render and Tokenize are the times that the template and the tokenizer took.
	Render, Tokenize time.Duration

	turn *conversation // nil of a text
}

// Prompt is the prompt that [Model.Generate] runs for r. It may be longer than the context;
// one of more than most tokens, where that is not 0, is a [*ContextError]. A long text
// takes a while: the work ends soon after ctx does.
func (m *Model) Prompt(ctx context.Context, r *Request, most int) (Prompt, error) {
	if r.Prepared != nil {
		if r.Prompt != "" || r.PromptTokens != nil || r.Infill != nil {
			return Prompt{}, fmt.Errorf("realizar: %w: both a prompt and one that was prepared", ErrRequest)
		}
		return *r.Prepared, nil
	}
	if r.PromptTokens != nil {
		if r.Prompt != "" || r.Infill != nil {
			return Prompt{}, fmt.Errorf("realizar: %w: both a prompt and prompt tokens", ErrRequest)
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
			return Prompt{}, fmt.Errorf("realizar: %w: both a prompt and a text with a gap", ErrRequest)
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

// An error has the length of a prompt that is so many times longer than it may be, or has so
// many tokens. Longer ones are not turned into tokens as a whole.
const (
	countedContexts = 4
	countedTokens   = 16 << 10
)

// limitsOf bound the tokens of a text of which there may be most, 0 for any number.
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

// tooLong is an error of a tokenizer as that of a prompt that may have most tokens.
func tooLong(err error, most int) error {
	var long *tokenizer.LengthError
	if errors.As(err, &long) {
		err = &ContextError{Prompt: long.Least, Context: most, More: true}
	}
	return wrap(err)
}

// ChatPrompt is the prompt that [Model.Chat] runs for r. It may be longer than the
// context; one of more than most tokens, where that is not 0, is a [*ContextError].
// Special tokens match only in what the template wrote. Where the tokenizer begins every
// text with a token, the prompt has it once, whether or not the template wrote it. The
// work ends soon after ctx does. An error of the tokenizer comes with the Text.
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

// render is the text that the model's chat template makes of r.
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
		return nil, fmt.Errorf("realizar: %w: %d tools, but the model's chat template takes none", ErrRequest, len(r.Tools))
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
	made := 0 // bytes that are reserved for what the template makes
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
	// Of this the text stays.
	stays := 0
	for _, s := range text {
		stays += len(s.Text)
	}
	_ = account.ReserveInt(min(stays, made) - made) // what is given back is not refused
	if err != nil {
		return nil, wrap(err)
	}
	return text, nil
}

// checkContinue refuses what does not go with an answer that continues a message.
func (r *ChatRequest) checkContinue() error {
	if !r.Continue {
		return nil
	}
	bad := func(format string, a ...any) error {
		return fmt.Errorf("realizar: %w: %s", ErrRequest, fmt.Sprintf(format, a...))
	}
	switch last := len(r.Messages) - 1; {
	case last < 0:
		return bad("there is no message to continue")
	case r.Messages[last].Role != "assistant":
		return bad("the last message is to be continued, and is of role %.50q; want assistant", r.Messages[last].Role)
	case len(r.Messages[last].ToolCalls) > 0:
		return bad("the last message is to be continued, and calls tools; want text alone")
	case r.ToolChoice.Mode == ToolRequired || r.ToolChoice.Mode == ToolNamed:
		return bad("a call of a tool is required, and the answer continues a text")
	case r.Effort != "" && r.Effort != "none", r.ThinkingTokens != nil && *r.ThinkingTokens > 0:
		return bad("a thought is asked for, and the answer continues a text, behind which none begins")
	}
	return nil
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
