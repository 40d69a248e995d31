package server

import (
	"context"
	"errors"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
)

// ChatFields has a dialect's names for the parts of a conversation, for error messages. An empty
// name means that of Messages.
type ChatFields struct {
	Messages, Tools, ToolChoice, Effort, Thinking string
	// Parameters returns the name of the schema of the tool with that index; if nil, errors name
	// Tools.
	Parameters func(tool int) string
}

// Continues reports whether a conversation ends in text of the assistant, which an answer can
// continue.
func Continues(messages []chat.Message) bool {
	if len(messages) == 0 {
		return false
	}
	last := &messages[len(messages)-1]
	return last.Role == "assistant" && last.Content != "" && len(last.ToolCalls) == 0
}

// ChatPrompt returns the prompt of a conversation. The prompt may be longer than the context.
func (x *Exchange) ChatPrompt(r *realizar.ChatRequest, f ChatFields) (realizar.Prompt, error) {
	done, err := x.preparing()
	if err != nil {
		return realizar.Prompt{}, err
	}
	defer done()
	return x.chatPrompt(x.work, r, &f, 0)
}

func (x *Exchange) chatPrompt(ctx context.Context, r *realizar.ChatRequest, f *ChatFields, most int) (realizar.Prompt, error) {
	p, err := x.Model().ChatPrompt(ctx, r, most)
	if isWish(err) {
		return p, OfField(x.wishOf(ctx, r, f), err)
	}
	return p, OfField(f.Messages, err)
}

// isWish reports whether err may mean that the chat template does not support an option of the
// request, rather than its messages.
func isWish(err error) bool {
	return errors.Is(err, realizar.ErrRequest) && !errors.Is(err, realizar.ErrContext) && !errors.Is(err, chat.ErrRequest)
}

// wishOf returns the name of the field that makes the prompt of r fail. It drops the options one
// after another; the one whose removal ends the failure is the cause.
func (x *Exchange) wishOf(ctx context.Context, r *realizar.ChatRequest, f *ChatFields) string {
	less := *r
	for _, wish := range []struct {
		name  string
		given bool
		leave func()
	}{
		{f.Effort, r.Effort != "", func() { less.Effort = "" }},
		{f.Thinking, r.ThinkingTokens != nil, func() { less.ThinkingTokens = nil }},
		{f.ToolChoice, r.ToolChoice.Mode != realizar.ToolAuto, func() { less.ToolChoice = realizar.ToolChoice{} }},
		{f.Tools, len(r.Tools) > 0, func() { less.Tools = nil }},
	} {
		if !wish.given {
			continue
		}
		wish.leave()
		if _, err := x.Model().ChatPrompt(ctx, &less, x.Model().Context()); !isWish(err) && wish.name != "" {
			return wish.name
		}
	}
	return f.Messages
}

// checkTools returns an error for a strict tool whose schema cannot be enforced, and names the
// schema.
func (x *Exchange) checkTools(ctx context.Context, r *realizar.ChatRequest, f *ChatFields) error {
	if r.ToolChoice.Mode == realizar.ToolNone {
		return nil
	}
	for i := range r.Tools {
		t := &r.Tools[i]
		if !t.Strict || len(t.Parameters) == 0 {
			continue
		}
		param := f.Tools
		if f.Parameters != nil {
			param = f.Parameters(i)
		}
		if _, err := x.grammar(ctx, &Grammar{Kind: JSONSchema, Text: t.Parameters, Strict: true, Param: param}); err != nil {
			return err
		}
	}
	return nil
}
