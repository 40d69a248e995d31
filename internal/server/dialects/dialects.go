// Package dialects lists the dialects that are served.
package dialects

import (
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/anthropic"
	"github.com/realizar/realizar/internal/server/llamacpp"
	"github.com/realizar/realizar/internal/server/ollama"
	"github.com/realizar/realizar/internal/server/openai"
	"github.com/realizar/realizar/internal/server/vllm"
)

// All are the dialects of this build. The first one writes errors of requests that belong to no
// dialect.
var All = []server.Dialect{
	openai.Dialect{},
	anthropic.Dialect{},
	vllm.Dialect{},
	ollama.Dialect{},
	llamacpp.Dialect{},
}
