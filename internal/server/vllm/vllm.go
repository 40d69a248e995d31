// Package vllm is the dialect of the endpoints that vLLM added to OpenAI's API: tokenizing,
// detokenizing, rendering of chats, and ranking of documents. Keys, errors, messages and tools are
// those of package openai.
package vllm

import (
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/openai"
)

// Dialect is vLLM's dialect.
type Dialect struct{ openai.Dialect }

// Routes returns the endpoints that OpenAI's dialect lacks.
func (Dialect) Routes() []server.Route {
	return []server.Route{
		{Pattern: "POST /v1/chat/completions/render", Handle: render},
		{Pattern: "POST /v1/rerank", Handle: rerank},
		{Pattern: "POST /rerank", Handle: rerank},
		{Pattern: "GET /version", Handle: version},
		{Pattern: "POST /tokenize", Handle: tokenize},
		{Pattern: "POST /detokenize", Handle: detokenize},
	}
}
