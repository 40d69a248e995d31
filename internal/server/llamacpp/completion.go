package llamacpp

import (
	"encoding/json"
	"slices"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// maxPrompts are the most of one request.
const maxPrompts = 2048

// A completionRequest is what POST /completion takes.
type completionRequest struct {
	settings
	prompts []realizar.Request
	several bool // the answer is a list
}

var completionFields = slices.Concat(fields.List[completionRequest]{
	fields.New("prompt", "a string, in which special tokens match, a list of token ids, or a list of strings or of such lists", "", readPrompts),
}, fields.Within(func(r *completionRequest) *settings { return &r.settings }, settingsFields))

func readPrompts(r *completionRequest, v json.RawMessage) error {
	if v[0] == '"' {
		r.prompts = make([]realizar.Request, 1)
		return fields.ReadText(v, &r.prompts[0].Prompt)
	}
	if ids, err := fields.ReadIDs(v); err == nil && len(ids) > 0 {
		r.prompts = []realizar.Request{{PromptTokens: ids}}
		return nil
	}
	list, err := fields.Elements(v)
	switch {
	case err != nil:
		return err
	case len(list) == 0:
		return fields.Invalid("prompt", "prompt is an empty list; want one prompt at least")
	case len(list) > maxPrompts:
		return fields.Invalid("prompt", "prompt is a list of %d; want %d at most", len(list), maxPrompts)
	}
	r.several = true
	r.prompts = make([]realizar.Request, len(list))
	for i, v := range list {
		if v[0] == '[' {
			r.prompts[i].PromptTokens, err = fields.ReadIDs(v)
		} else {
			err = fields.ReadText(v, &r.prompts[i].Prompt)
		}
		if err != nil {
			return fields.ErrWrong
		}
	}
	return nil
}

// completion is POST /completion.
func completion(x *server.Exchange) error {
	r, err := server.ReadFor(x, completionFields, func() *completionRequest { return &completionRequest{settings: newSettings(x)} })
	if err != nil {
		return err
	}
	if r.prompts == nil {
		return fields.Missing("prompt")
	}
	if r.several {
		if err := x.NoTimings(); err != nil {
			return err
		}
	}
	if err := r.settle(x); err != nil {
		return err
	}
	for i := range r.prompts {
		r.prompts[i].Special, r.prompts[i].Generation = true, r.generation
	}
	return x.Answer(&server.Request{Prompts: r.prompts, Seeded: r.seeded, Param: "prompt", Grammar: r.grammar()}, newWriter(x, &r.settings, r.several))
}
