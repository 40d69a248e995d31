package ollama

import (
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// A pushRequest is the body of POST /api/push.
type pushRequest struct {
	model, older string
	stream       bool
}

var pushFields = fields.List[pushRequest]{
	fields.Text("model", "name", func(r *pushRequest) *string { return &r.model }),
	fields.Text("name", "model, its newer name", func(r *pushRequest) *string { return &r.older }),
	fields.Flag("stream", "true", func(r *pushRequest) *bool { return &r.stream }),
	fields.Ignored[pushRequest]("insecure"),
	fields.Ignored[pushRequest]("username"),
	fields.Ignored[pushRequest]("password"),
}

// push handles POST /api/push.
func push(x *server.Exchange) error {
	store, err := x.Server.Store()
	if err != nil {
		return err
	}
	r := pushRequest{stream: true}
	if err := server.Read(x, pushFields, &r); err != nil {
		return err
	}
	name, err := nameOf(r.model, r.older)
	if err != nil {
		return err
	}
	to := newReport(x, r.stream)
	if err := store.Push(x.Work(), name, func(p server.Progress) error {
		switch p.Phase {
		case server.ReadManifest:
			return to.step("retrieving manifest")
		case server.Transfer:
			return to.file("pushing", &p)
		}
		return to.step("pushing manifest")
	}); err != nil {
		return err
	}
	return to.success()
}
