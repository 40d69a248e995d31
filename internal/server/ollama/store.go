package ollama

import (
	"fmt"
	"net/http"

	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// noStore answers what a store of models would do.
func noStore(x *server.Exchange) error {
	return &server.Error{Status: http.StatusNotFound, Code: "no_model_store",
		Message: fmt.Sprintf("there is no store of models yet: realizar serve FILE serves a file that is there, and this server has %q; /api/chat, /api/generate, /api/embed, /api/tags, /api/show and /api/ps work", x.Server.Names())}
}

// pullRequest is what POST /api/pull takes.
type pullRequest struct {
	model, older string
	stream       bool
}

var pullFields = fields.List[pullRequest]{
	fields.Text("model", "name", func(r *pullRequest) *string { return &r.model }),
	fields.Text("name", "model, which is its newer name", func(r *pullRequest) *string { return &r.older }),
	fields.Flag("stream", "true", func(r *pullRequest) *bool { return &r.stream }),
	fields.Ignored[pullRequest]("insecure"),
	fields.Ignored[pullRequest]("username"),
	fields.Ignored[pullRequest]("password"),
}

// pull is POST /api/pull: what is served is there already.
func pull(x *server.Exchange) error {
	r := pullRequest{stream: true}
	if err := server.Read(x, pullFields, &r); err != nil {
		return err
	}
	if r.model == "" {
		r.model = r.older
	}
	if r.model == "" {
		return fields.Missing("model")
	}
	if _, err := x.Server.Find(r.model); err != nil {
		return noStore(x)
	}
	b := append(jsontext.AppendString([]byte(`{"status":`), "success"), '}')
	if !r.stream {
		x.WriteJSON(b)
		return nil
	}
	s := x.Stream(server.Lines, func(e *server.Error) error { return e })
	s.Add(append(b, '\n'))
	return s.Flush()
}
