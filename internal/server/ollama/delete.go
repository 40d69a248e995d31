package ollama

import (
	"net/http"

	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// A deleteRequest is the body of DELETE /api/delete.
type deleteRequest struct{ model, older string }

var deleteFields = fields.List[deleteRequest]{
	fields.Text("model", "name", func(r *deleteRequest) *string { return &r.model }),
	fields.Text("name", "model, its newer name", func(r *deleteRequest) *string { return &r.older }),
}

// deleteModel handles DELETE /api/delete.
func deleteModel(x *server.Exchange) error {
	store, err := x.Server.Store()
	if err != nil {
		return err
	}
	var r deleteRequest
	if err := server.Read(x, deleteFields, &r); err != nil {
		return err
	}
	name, err := nameOf(r.model, r.older)
	if err != nil {
		return err
	}
	if err := store.Delete(x.Work(), name); err != nil {
		return err
	}
	x.Empty(http.StatusOK)
	return nil
}
