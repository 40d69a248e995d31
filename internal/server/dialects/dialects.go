// Package dialects lists what clients may speak.
package dialects

import (
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/anthropic"
	"github.com/realizar/realizar/internal/server/llamacpp"
	"github.com/realizar/realizar/internal/server/ollama"
	"github.com/realizar/realizar/internal/server/openai"
	"github.com/realizar/realizar/internal/server/vllm"
)

// All are the dialects of this build. Errors that belong to none are in the first one.
var All = []server.Dialect{
	openai.Dialect{},
	anthropic.Dialect{},
	vllm.Dialect{},
	ollama.Dialect{},
	llamacpp.Dialect{},
}
