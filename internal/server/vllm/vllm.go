// Package vllm has the endpoints that vLLM added to OpenAI's: a prompt as tokens, tokens
// as text, and the ranking of documents, in the shape that Jina's and Cohere's APIs
// share. Keys, errors, messages and tools are OpenAI's.
package vllm

import (
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/openai"
)

// Dialect is vLLM's.
type Dialect struct{ openai.Dialect }

// Routes are its endpoints beside OpenAI's.
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
