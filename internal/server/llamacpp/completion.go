package llamacpp

import (
	"encoding/json"
	"slices"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

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
	prompts, several, err := fields.ReadPrompts(v, true)
	r.several = several
	for _, p := range prompts {
		r.prompts = append(r.prompts, realizar.Request{Prompt: p.Text, PromptTokens: p.IDs})
	}
	return err
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
