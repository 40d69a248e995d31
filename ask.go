package realizar

import (
	"context"
	"strings"

	"github.com/realizar/realizar/chat"
)

// Ask answers a question by the model's chat template and returns the whole answer, of which
// every token is the likeliest. [Model.Chat] has the settings, and the answer in pieces.
func (m *Model) Ask(ctx context.Context, question string) (string, error) {
	return text(m.Chat(ctx, &ChatRequest{Messages: []chat.Message{{Role: "user", Content: question}}}))
}

// Complete returns the whole text that continues a prompt, of which every token is the likeliest,
// until the model ends it or the context is full. [Model.Generate] has the settings, and the text
// in pieces.
func (m *Model) Complete(ctx context.Context, prompt string) (string, error) {
	return text(m.Generate(ctx, &Request{Prompt: prompt}))
}

// text is what the events of one answer say together.
func text(events func(yield func(Event, error) bool)) (string, error) {
	var b strings.Builder
	for event, err := range events {
		if err != nil {
			return b.String(), err
		}
		b.WriteString(event.Text)
	}
	return b.String(), nil
}
