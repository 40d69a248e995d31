package llamacpp

import (
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
	"github.com/realizar/realizar/internal/server/openai"
)

// applyTemplate handles POST /apply-template, which renders a conversation with the chat template.
func applyTemplate(x *server.Exchange) error {
	if err := x.NoTimings(); err != nil {
		return err
	}
	r, names, err := openai.ReadChat(x)
	if err != nil {
		return err
	}
	p, err := x.ChatPrompt(r, names)
	if err != nil {
		return err
	}
	text := p.Text.String()
	if err := x.Reserve(2 * len(text)); err != nil {
		return err
	}
	x.WriteJSON(append(jsontext.AppendString([]byte(`{"prompt":`), text), '}'))
	return nil
}
