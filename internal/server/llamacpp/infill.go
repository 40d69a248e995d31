package llamacpp

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// An infillRequest is what POST /infill takes.
type infillRequest struct {
	settings
	text         realizar.Infill
	typed        string // between the text before and the gap
	before, next bool   // what was given
}

var infillFields = slices.Concat(fields.List[infillRequest]{
	fields.New("input_prefix", "a string: the text before the gap", "", func(r *infillRequest, v json.RawMessage) error {
		r.before = true
		return fields.ReadText(v, &r.text.Before)
	}),
	fields.New("input_suffix", "a string: the text after it", "", func(r *infillRequest, v json.RawMessage) error {
		r.next = true
		return fields.ReadText(v, &r.text.After)
	}),
	fields.New("input_extra", "a list of up to 1024 objects: other files, the nearest last", "none", func(r *infillRequest, v json.RawMessage) (err error) {
		r.text.Files, err = readFiles(v)
		return err
	}),
	fields.Text("prompt", "empty; it stands behind input_prefix", func(r *infillRequest) *string { return &r.typed }),
}, fields.Within(func(r *infillRequest) *settings { return &r.settings }, settingsFields))

var fileFields = fields.List[realizar.File]{
	fields.Text("filename", "the text is part of a file that is not named", func(f *realizar.File) *string { return &f.Name }),
	fields.Text("text", "empty", func(f *realizar.File) *string { return &f.Text }),
	fields.Ignored[realizar.File]("time"), // of editors' own
}

// maxFiles are the most of one request.
const maxFiles = 1024

func readFiles(v json.RawMessage) ([]realizar.File, error) {
	list, err := fields.Elements(v)
	if err != nil {
		return nil, err
	}
	if len(list) > maxFiles {
		return nil, fields.Invalid("input_extra", "input_extra has %d files; want %d at most", len(list), maxFiles)
	}
	files := make([]realizar.File, len(list))
	for i, v := range list {
		if err := fileFields.Decode(&files[i], v, fmt.Sprintf("input_extra[%d]", i)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// infill is POST /infill: the text that belongs between two others.
func infill(x *server.Exchange) error {
	r, err := server.ReadFor(x, infillFields, func() *infillRequest { return &infillRequest{settings: newSettings(x)} })
	if err != nil {
		return err
	}
	switch {
	case !r.before:
		return fields.Missing("input_prefix")
	case !r.next:
		return fields.Missing("input_suffix")
	}
	if err := r.settle(x); err != nil {
		return err
	}
	r.text.Before += r.typed
	p := realizar.Request{Infill: &r.text, Generation: r.generation}
	return x.Answer(&server.Request{Prompts: []realizar.Request{p}, Seeded: r.seeded, Param: "input_prefix", Grammar: r.grammar()}, newWriter(x, &r.settings, false))
}
