package server

import (
	"context"
	"errors"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
)

// ChatFields are the names that a dialect has for the parts of a conversation, for errors
// about them. An empty one is that of Messages.
type ChatFields struct {
	Messages, Tools, ToolChoice, Effort, Thinking string
	// Parameters is the name of the schema of the tool of that number; nil: that of Tools.
	Parameters func(tool int) string
}

// Continues reports whether a conversation ends in a text of the assistant's, with which an
// answer can go on.
func Continues(messages []chat.Message) bool {
	if len(messages) == 0 {
		return false
	}
	last := &messages[len(messages)-1]
	return last.Role == "assistant" && last.Content != "" && len(last.ToolCalls) == 0
}

// ChatPrompt is the prompt of a conversation. It may be longer than the context.
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

// isWish reports whether err may be that the chat template cannot do what is asked for
// beside the messages.
func isWish(err error) bool {
	return errors.Is(err, realizar.ErrRequest) && !errors.Is(err, realizar.ErrContext) && !errors.Is(err, chat.ErrRequest)
}

// wishOf is the field that the prompt of r fails for: the last one of those that must be
// left out for it not to fail so.
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

// checkTools refuses tools whose calls must be held to a schema that cannot be enforced,
// and names it.
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
