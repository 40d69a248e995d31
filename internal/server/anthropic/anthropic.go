// Package anthropic is the dialect of Anthropic's Messages API. Each file has one part of a request
// or its answer: the fields of both endpoints, the blocks of a message, system prompts, tools,
// thinking, output formats, and the writers of whole answers and of streams.
package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/realizar/realizar/internal/server"
)

// Dialect is Anthropic's dialect.
type Dialect struct{}

// Routes returns the dialect's endpoints.
func (Dialect) Routes() []server.Route {
	return []server.Route{
		{Pattern: "POST /v1/messages", Operation: "chat", Handle: restated(messages)},
		{Pattern: "POST /v1/messages/count_tokens", Handle: restated(countTokens)},
	}
}

// Key returns the key in the X-Api-Key header, or else in the Authorization header.
func (Dialect) Key(r *http.Request) (string, error) {
	if key := strings.TrimSpace(r.Header.Get("X-Api-Key")); key != "" {
		return key, nil
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if key = strings.TrimSpace(key); !strings.EqualFold(scheme, "Bearer") || key == "" {
		return "", &server.Error{Status: http.StatusUnauthorized, Code: "missing_api_key",
			Message: "the request bears no key; send it in a header, X-Api-Key: KEY or Authorization: Bearer KEY"}
	}
	return key, nil
}

// Error returns the body of an error. Anthropic's clients look for the request's id in a Request-Id
// header.
func (Dialect) Error(h http.Header, e *server.Error) []byte {
	h.Set("Request-Id", e.RequestID)
	return errorBody(e)
}

func errorBody(e *server.Error) []byte {
	type details struct {
		Code  string `json:"error_code"`
		Param string `json:"param,omitempty"`
	}
	type inner struct {
		Type    string   `json:"type"`
		Message string   `json:"message"`
		Details *details `json:"details,omitempty"`
	}
	in := inner{Type: errorType(e.Status), Message: e.Message}
	if e.Code != "" {
		in.Details = &details{e.Code, e.Param}
	}
	if e.Code == tooLong {
		in.Message = "prompt is too long: " + e.Message // agents know these words and shorten the prompt
	}
	data, _ := json.Marshal(struct {
		Type      string `json:"type"`
		Error     inner  `json:"error"`
		RequestID string `json:"request_id"`
	}{"error", in, e.RequestID}) // Marshal cannot fail here
	return data
}

// tooLong is the code of the error of a prompt that exceeds the context.
const tooLong = "context_length_exceeded"
