package ollama

import (
	"net/http"

	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// copyRequest is what POST /api/copy takes.
type copyRequest struct{ from, to string }

var copyFields = fields.List[copyRequest]{
	fields.Text("source", "", func(r *copyRequest) *string { return &r.from }),
	fields.Text("destination", "", func(r *copyRequest) *string { return &r.to }),
}

// copyModel is POST /api/copy.
func copyModel(x *server.Exchange) error {
	store, err := x.Server.Store()
	if err != nil {
		return err
	}
	var r copyRequest
	if err := server.Read(x, copyFields, &r); err != nil {
		return err
	}
	switch {
	case r.from == "":
		return fields.Missing("source")
	case r.to == "":
		return fields.Missing("destination")
	}
	if err := store.Copy(x.Work(), r.from, r.to); err != nil {
		return err
	}
	x.Empty(http.StatusOK)
	return nil
}
