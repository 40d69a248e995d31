// Package ollama is the dialect of Ollama's API, at its paths. A file knows one endpoint:
// the fields of its requests and the shape of its answers; settings.go, options.go and
// writer.go have what chats and completions share. Nothing is cut silently: what Ollama
// would drop to make a prompt fit is an error here.
package ollama

import (
	"net/http"
	"strings"

	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// Dialect is Ollama's.
type Dialect struct{}

// Routes are its endpoints.
func (Dialect) Routes() []server.Route {
	return []server.Route{
		{Pattern: "GET /{$}", Handle: root},
		{Pattern: "GET /api/version", Handle: version},
		{Pattern: "GET /api/tags", Handle: tags},
		{Pattern: "GET /api/ps", Handle: running},
		{Pattern: "POST /api/show", Handle: show},
		{Pattern: "POST /api/chat", Handle: chatCompletion},
		{Pattern: "POST /api/generate", Handle: generate},
		{Pattern: "POST /api/embed", Handle: embed},
		{Pattern: "POST /api/embeddings", Handle: embeddings},
		{Pattern: "POST /api/pull", Handle: pull},
		{Pattern: "POST /api/push", Handle: push},
		{Pattern: "POST /api/create", Handle: create},
		{Pattern: "POST /api/copy", Handle: copyModel},
		{Pattern: "DELETE /api/delete", Handle: deleteModel},
		{Pattern: "HEAD /api/blobs/{digest}", Handle: hasBlob},
		{Pattern: "POST /api/blobs/{digest}", Handle: addBlob},
	}
}

// Key is that of the header Authorization.
func (Dialect) Key(r *http.Request) (string, error) { return server.BearerKey(r) }

// Error is an error's body.
func (Dialect) Error(h http.Header, e *server.Error) []byte {
	if e.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	return errorBody(e)
}

// errorBody is a text, which names the field that it is about.
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
