package ollama

import (
	"strings"

	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// nameOf is the name of a model in a request that may have it in the field name, which is
// older.
func nameOf(model, older string) (string, error) {
	switch {
	case model != "":
		return model, nil
	case older != "":
		return older, nil
	}
	return "", fields.Missing("model")
}

// A report tells a client how far a change of the store is: a line for each step of a
// stream, or the last one alone.
type report struct {
	x      *server.Exchange
	stream *server.Stream // nil where the answer comes as a whole
}

func newReport(x *server.Exchange, stream bool) *report {
	r := &report{x: x}
	if stream {
		r.stream = x.Stream(server.Lines, func(e *server.Error) error { return r.send(errorBody(e)) })
	}
	return r
}

func (r *report) send(line []byte) error {
	r.stream.Add(append(line, '\n'))
	return r.stream.Flush()
}

// step tells of a step.
func (r *report) step(status string) error {
	if r.stream == nil {
		return nil
	}
	return r.send(append(statusLine(status), '}'))
}

// file tells how much has come of a file, which verb says the way of.
func (r *report) file(verb string, p *server.Progress) error {
	if r.stream == nil {
		return nil
	}
	b := jsontext.AppendString(append(statusLine(verb+" "+short12(p.Digest)), `,"digest":`...), p.Digest)
	b = jsontext.AppendInt(append(b, `,"total":`...), int(p.Total))
	if p.Completed > 0 {
		b = jsontext.AppendInt(append(b, `,"completed":`...), int(p.Completed))
	}
	return r.send(append(b, '}'))
}

// success ends the answer.
func (r *report) success() error {
	b := append(statusLine("success"), '}')
	if r.stream != nil {
		return r.send(b)
	}
	r.x.WriteJSON(b)
	return nil
}

func statusLine(status string) []byte { return jsontext.AppendString([]byte(`{"status":`), status) }

// short12 is a digest as people are shown it.
func short12(digest string) string {
	_, hex, _ := strings.Cut(digest, ":")
	return hex[:min(12, len(hex))]
}
