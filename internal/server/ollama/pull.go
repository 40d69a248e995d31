package ollama

import (
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// A pullRequest is the body of POST /api/pull.
type pullRequest struct {
	model, older string
	stream       bool
}

var pullFields = fields.List[pullRequest]{
	fields.Text("model", "name", func(r *pullRequest) *string { return &r.model }),
	fields.Text("name", "model, its newer name", func(r *pullRequest) *string { return &r.older }),
	fields.Flag("stream", "true", func(r *pullRequest) *bool { return &r.stream }),
	fields.Ignored[pullRequest]("insecure"),
	fields.Ignored[pullRequest]("username"),
	fields.Ignored[pullRequest]("password"),
}

// pull handles POST /api/pull. A served model that is not in the store needs no pull.
func pull(x *server.Exchange) error {
	r := pullRequest{stream: true}
	if err := server.Read(x, pullFields, &r); err != nil {
		return err
	}
	name, err := nameOf(r.model, r.older)
	if err != nil {
		return err
	}
	store, denied := x.Server.Store()
	if _, err := x.Server.Find(name); err == nil && (denied != nil || !stored(x, store, name)) {
		return newReport(x, r.stream).success()
	}
	if denied != nil {
		return denied
	}
	to := newReport(x, r.stream)
	if err := store.Pull(x.Work(), name, func(p server.Progress) error {
		switch p.Phase {
		case server.ReadManifest:
			return to.step("pulling manifest")
		case server.Transfer:
			return to.file("pulling", &p)
		case server.Verify:
			return to.step("verifying sha256 digest")
		}
		return to.step("writing manifest")
	}); err != nil {
		return err
	}
	return to.success()
}

// stored reports whether the store has a model with the name.
func stored(x *server.Exchange, store server.Store, name string) bool {
	_, err := store.Find(x.Work(), name)
	return err == nil
}
