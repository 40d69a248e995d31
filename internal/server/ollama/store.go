package ollama

import (
	"strings"

	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// nameOf returns the name of a model from the field model, or else from the older field name.
func nameOf(model, older string) (string, error) {
	switch {
	case model != "":
		return model, nil
	case older != "":
		return older, nil
	}
	return "", fields.Missing("model")
}

// A report sends the progress of a change of the store: a line for each step, or only the last line
// if the answer is not a stream.
type report struct {
	x      *server.Exchange
	stream *server.Stream // nil if the answer is sent whole
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

// step reports a step.
func (r *report) step(status string) error {
	if r.stream == nil {
		return nil
	}
	return r.send(append(statusLine(status), '}'))
}

// file reports the progress of a file. verb is the direction, such as pulling.
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

// short12 returns the first 12 hexadecimal digits of a digest.
func short12(digest string) string {
	_, hex, _ := strings.Cut(digest, ":")
	return hex[:min(12, len(hex))]
}
