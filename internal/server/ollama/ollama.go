// Package ollama is the dialect of Ollama's API. Each endpoint has a file with the fields of its
// requests and the shape of its answers; settings.go, options.go and writer.go have what chats and
// completions share. Nothing is truncated silently: if Ollama would drop part of a prompt to make
// it fit, this dialect returns an error.
package ollama

import (
	"net/http"
	"strings"

	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// Dialect is Ollama's dialect.
type Dialect struct{}

// Routes returns the dialect's endpoints.
func (Dialect) Routes() []server.Route {
	return []server.Route{
		{Pattern: "GET /{$}", Handle: root},
		{Pattern: "GET /api/version", Handle: version},
		{Pattern: "GET /api/tags", Handle: tags},
		{Pattern: "GET /api/ps", Handle: running},
		{Pattern: "POST /api/show", Handle: show},
		{Pattern: "POST /api/chat", Operation: "chat", Handle: chatCompletion},
		{Pattern: "POST /api/generate", Operation: "text_completion", Handle: generate},
		{Pattern: "POST /api/embed", Operation: "embeddings", Handle: embed},
		{Pattern: "POST /api/embeddings", Operation: "embeddings", Handle: embeddings},
		{Pattern: "POST /api/pull", Handle: pull},
		{Pattern: "POST /api/push", Handle: push},
		{Pattern: "POST /api/create", Handle: create},
		{Pattern: "POST /api/copy", Handle: copyModel},
		{Pattern: "DELETE /api/delete", Handle: deleteModel},
		{Pattern: "HEAD /api/blobs/{digest}", Handle: hasBlob},
		{Pattern: "POST /api/blobs/{digest}", Handle: addBlob},
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

// errorBody returns an error's body. The format has no member for the field that the error is
// about, so the message names it.
func errorBody(e *server.Error) []byte {
	text := e.Message
	if !strings.Contains(text, e.Param) {
		last := e.Param[strings.LastIndexByte(e.Param, '.')+1:]
		if rest, ok := strings.CutPrefix(text, last+" "); ok {
			text = e.Param + " " + rest
		} else {
			text = e.Param + ": " + text
		}
	}
	return append(jsontext.AppendString([]byte(`{"error":`), text), '}')
}
