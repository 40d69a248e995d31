// Package llamacpp is the dialect of llama.cpp's server: completions, infilling, the server's
// properties and models, and the rendering of chat templates. Keys, errors and messages are those
// of package openai. Package vllm has /tokenize and /detokenize, which both servers have.
package llamacpp

import (
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/openai"
)

// Dialect is the dialect of llama.cpp's server.
type Dialect struct{ openai.Dialect }

// Routes returns the endpoints that OpenAI's dialect lacks.
func (Dialect) Routes() []server.Route {
	return []server.Route{
		{Pattern: "POST /completion", Operation: "text_completion", Handle: completion},
		{Pattern: "POST /completions", Operation: "text_completion", Handle: completion},
		{Pattern: "POST /infill", Operation: "text_completion", Handle: infill},
		{Pattern: "POST /apply-template", Handle: applyTemplate},
		{Pattern: "GET /props", Handle: props},
		{Pattern: "GET /slots", Handle: slots},
		{Pattern: "GET /models", Handle: models},
		{Pattern: "GET /models/events", Handle: events},
		{Pattern: "POST /models/load", Handle: load},
		{Pattern: "POST /models/unload", Handle: unload},
	}
}
