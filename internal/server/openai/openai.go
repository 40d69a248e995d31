// Package openai is the dialect of OpenAI's API, with the fields that vLLM added to its requests.
// Each endpoint has a file with the fields of its requests and the shape of its answers;
// settings.go, messages.go, tools.go and logprobs.go have what endpoints share.
package openai

import (
	"encoding/json"
	"net/http"

	"github.com/realizar/realizar/internal/server"
)

// Dialect is OpenAI's dialect.
type Dialect struct{}

// Routes returns the dialect's endpoints, for one server.
func (Dialect) Routes() []server.Route {
	kept := newKeptItems()
	return []server.Route{
		{Pattern: "GET /v1/models", Handle: models},
		{Pattern: "GET /v1/models/{id...}", Handle: modelNamed},
		{Pattern: "POST /v1/chat/completions", Operation: "chat", Handle: chatCompletions},
		{Pattern: "POST /v1/completions", Operation: "text_completion", Handle: completions},
		{Pattern: "POST /v1/responses", Operation: "chat", Handle: func(x *server.Exchange) error { return responses(x, kept) }},
		{Pattern: "POST /v1/embeddings", Operation: "embeddings", Handle: embeddings},
	}
}

// Key returns the key in the Authorization header.
func (Dialect) Key(r *http.Request) (string, error) { return server.BearerKey(r) }

// Error returns the body of an error.
func (Dialect) Error(h http.Header, e *server.Error) []byte {
	if e.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	return errorBody(e)
}

func errorBody(e *server.Error) []byte {
	type inner struct {
		Message   string  `json:"message"`
		Type      string  `json:"type"`
		Param     *string `json:"param"`
		Code      *string `json:"code"`
		RequestID string  `json:"request_id,omitempty"`
	}
	in := inner{Message: e.Message, Type: errorType(e.Status), RequestID: e.RequestID}
	if e.Param != "" {
		in.Param = &e.Param
	}
	if e.Code != "" {
		in.Code = &e.Code
	}
	data, _ := json.Marshal(map[string]inner{"error": in}) // Marshal cannot fail here
	return data
}

// errorType returns the type of an error with the status.
func errorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status == http.StatusServiceUnavailable:
		return "overloaded_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}
