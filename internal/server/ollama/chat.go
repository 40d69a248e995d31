package ollama

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// chatRequest is what POST /api/chat takes.
type chatRequest struct {
	settings
	chat realizar.ChatRequest
}

var chatFields = slices.Concat(fields.Within(func(r *chatRequest) *settings { return &r.settings }, settingsFields), fields.List[chatRequest]{
	fields.New("messages", "a list of messages", "none, which loads the model", func(r *chatRequest, v json.RawMessage) (err error) {
		r.chat.Messages, err = readMessages(v)
		return err
	}),
	fields.New("tools", "a list of tools of type function", "none", func(r *chatRequest, v json.RawMessage) (err error) {
		r.chat.Tools, err = readTools(v)
		return err
	}),
})

// chatCompletion is POST /api/chat.
func chatCompletion(x *server.Exchange) error {
	r, err := server.ReadFor(x, chatFields, func() *chatRequest { return &chatRequest{settings: newSettings(x)} })
	if err != nil {
		return err
	}
	if err := r.settle(x); err != nil {
		return err
	}
	w := newWriter(x, &r.settings, chatShape)
	if len(r.chat.Messages) == 0 {
		return w.load()
	}
	r.chat.Continue = server.Continues(r.chat.Messages)
	r.chat.Generation, r.chat.Effort = r.options.generation, r.effort
	names := names
	names.Parameters = toolParameters
	return r.explain(x.Answer(&server.Request{Chat: &r.chat, Seeded: r.options.seeded, Fields: names, Grammar: r.form}, w.begin()))
}

// toolParameters is the name of the schema of a tool.
func toolParameters(tool int) string { return fmt.Sprintf("tools[%d].function.parameters", tool) }
