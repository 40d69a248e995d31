package ollama

import (
	"encoding/json"

	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// A createRequest is the body of POST /api/create.
type createRequest struct {
	model, older string
	stream       bool
	from         string
	files        map[string]string // digests by name
}

// fileMaxCount bounds the files of a model that is created.
const fileMaxCount = 1000

// ownChat says why fields that change a model's conversations are refused.
const ownChat = "a model has the chat template of its own files, and requests say the rest; leave it out"

var createFields = fields.List[createRequest]{
	fields.Text("model", "name", func(r *createRequest) *string { return &r.model }),
	fields.Text("name", "model, its newer name", func(r *createRequest) *string { return &r.older }),
	fields.Flag("stream", "true", func(r *createRequest) *bool { return &r.stream }),
	fields.Text("from", "files", func(r *createRequest) *string { return &r.from }),
	fields.New("files", "an object of the files' names and their digests, sha256:..., which were uploaded", "from", readFiles),
	fields.Only[createRequest]("template", `""`, ownChat, `""`),
	fields.Only[createRequest]("system", `""`, ownChat, `""`),
	fields.Only[createRequest]("parameters", "{}", "requests say their options; leave it out", "{}"),
	fields.Only[createRequest]("messages", "[]", ownChat, "[]"),
	fields.Only[createRequest]("license", `"" or []`, "a model has the licence of its own files; leave it out", `""`, "[]"),
	fields.Only[createRequest]("adapters", "{}", "adapters are not supported; merge them into the weights", "{}"),
	fields.Only[createRequest]("quantize", `""`, "weights stay as they are; upload files that are quantised", `""`),
	fields.Only[createRequest]("quantization", `""`, "weights stay as they are; upload files that are quantised", `""`),
	fields.Only[createRequest]("renderer", `""`, ownChat, `""`),
	fields.Only[createRequest]("parser", `""`, ownChat, `""`),
	fields.Only[createRequest]("requires", `""`, "it is a version of Ollama; leave it out", `""`),
	fields.Only[createRequest]("remote_host", `""`, "models run on this server; leave it out", `""`),
	fields.Only[createRequest]("info", "{}", "the model's files say it; leave it out", "{}"),
}

func readFiles(r *createRequest, v json.RawMessage) error {
	if v[0] != '{' {
		return fields.ErrWrong
	}
	r.files = map[string]string{}
	return fields.Members(v, "files", func(name string, value json.RawMessage) error {
		var digest string
		if err := fields.ReadText(value, &digest); err != nil {
			return err
		}
		if r.files[name] = digest; len(r.files) > fileMaxCount {
			return fields.Invalid("files", "files has more than %d files", fileMaxCount)
		}
		return nil
	})
}

// create handles POST /api/create. It gives a model another name, or makes a model of uploaded
// files.
func create(x *server.Exchange) error {
	store, err := x.Server.Store()
	if err != nil {
		return err
	}
	r := createRequest{stream: true}
	if err := server.Read(x, createFields, &r); err != nil {
		return err
	}
	name, err := nameOf(r.model, r.older)
	switch {
	case err != nil:
		return err
	case r.from == "" && len(r.files) == 0:
		return fields.Missing("from")
	case r.from != "" && len(r.files) > 0:
		return fields.Invalid("files", "a model is made from another one or of files; leave files or from out")
	}
	to := newReport(x, r.stream)
	if r.from != "" {
		if err := to.step("copying " + r.from); err != nil {
			return err
		}
		if err := store.Copy(x.Work(), r.from, name); err != nil {
			return err
		}
		return to.success()
	}
	if err := store.Create(x.Work(), name, r.files, func(p server.Progress) error {
		if p.Phase == server.Transfer {
			return to.step("using existing layer " + p.Digest)
		}
		return to.step("writing manifest")
	}); err != nil {
		return err
	}
	return to.success()
}
