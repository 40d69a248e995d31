// Package llamacpp is the dialect of llama.cpp's server: its completions, the text between
// two others, what the server is, and the chat template by itself. Keys, errors and messages
// are OpenAI's; /tokenize and /detokenize, which vLLM has too, are in its package.
package llamacpp

import (
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/openai"
)

// Dialect is that of llama.cpp's server.
type Dialect struct{ openai.Dialect }

// Routes are its endpoints beside OpenAI's.
func (Dialect) Routes() []server.Route {
	return []server.Route{
		{Pattern: "POST /completion", Handle: completion},
		{Pattern: "POST /completions", Handle: completion},
		{Pattern: "POST /infill", Handle: infill},
		{Pattern: "POST /apply-template", Handle: applyTemplate},
		{Pattern: "GET /props", Handle: props},
		{Pattern: "GET /slots", Handle: slots},
		{Pattern: "GET /models", Handle: models},
		{Pattern: "GET /models/events", Handle: events},
		{Pattern: "POST /models/load", Handle: load},
		{Pattern: "POST /models/unload", Handle: unload},
	}
}
