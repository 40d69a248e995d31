package openai

import (
	"encoding/json"
	"slices"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// defaultCompletionTokens is the length of a completion if the request has no max_tokens, as in
// OpenAI's API.
const defaultCompletionTokens = 16

// The limits of a request for completions.
const (
	maxAnswers           = 4096 // over all prompts
	maxCompletionsScores = 5
)

// A completionsRequest is the body of POST /v1/completions.
type completionsRequest struct {
	settings
	prompts               []realizar.Request
	maxTokens             *int
	maxCompletion         *int // another name of maxTokens, which routers set as well
	hasMax, hasCompletion bool
	echo                  bool
	logProbs              *int
	special               bool
	bestOf                *int
	suffix                string
}

var completionsFields = slices.Concat(fields.Within(func(r *completionsRequest) *settings { return &r.settings }, slices.Concat(settingsFields, formFields)), fields.List[completionsRequest]{
	fields.New("prompt", "a string, a list of strings, a list of token ids, or a list of such lists", "", readPrompts),
	fields.Limit("max_tokens", "16", 0, func(r *completionsRequest) **int {
		r.hasMax = true
		return &r.maxTokens
	}),
	fields.Limit("max_completion_tokens", "max_tokens", 0, func(r *completionsRequest) **int {
		r.hasCompletion = true
		return &r.maxCompletion
	}),
	fields.Flag("echo", "false", func(r *completionsRequest) *bool { return &r.echo }),
	fields.Optional("logprobs", "none", 0, maxCompletionsScores, func(r *completionsRequest) **int { return &r.logProbs }),
	fields.Flag("parse_special", "false: what looks like a special token is plain text", func(r *completionsRequest) *bool { return &r.special }),
	fields.Only[completionsRequest]("add_special_tokens", "true", "send token ids to have none added", "true"),
	fields.Optional("best_of", "n", 1, maxChoices, func(r *completionsRequest) **int { return &r.bestOf }),
	fields.New("suffix", "a string: the text behind the gap that the answer fills, of a model that was trained to fill gaps", "none", func(r *completionsRequest, v json.RawMessage) error {
		return fields.ReadText(v, &r.suffix)
	}),
})

func readPrompts(r *completionsRequest, v json.RawMessage) error {
	prompts, _, err := fields.ReadPrompts(v, false)
	for _, p := range prompts {
		r.prompts = append(r.prompts, realizar.Request{Prompt: p.Text, PromptTokens: p.IDs})
	}
	return err
}

func readCompletions(x *server.Exchange) (*completionsRequest, error) {
	r, err := server.ReadFor(x, completionsFields, func() *completionsRequest {
		return &completionsRequest{settings: newSettings(x), maxTokens: new(defaultCompletionTokens)}
	})
	if err != nil {
		return nil, err
	}
	n := r.generation.Choices
	switch {
	case r.prompts == nil:
		return nil, fields.Missing("prompt")
	case r.bestOf != nil && *r.bestOf != n:
		return nil, &fields.Error{Param: "best_of", Code: "unsupported_parameter", Message: "best_of other than n is not supported: all answers are sent"}
	case len(r.prompts)*n > maxAnswers:
		return nil, fields.Invalid("n", "%d prompts with %d answers each are more than %d", len(r.prompts), n, maxAnswers)
	}
	if r.hasCompletion {
		if r.hasMax && valueOr(r.maxTokens, -1) != valueOr(r.maxCompletion, -1) {
			return nil, fields.Invalid("max_tokens", "max_tokens is %d and max_completion_tokens %d; they are one thing, leave one out", valueOr(r.maxTokens, -1), valueOr(r.maxCompletion, -1))
		}
		r.maxTokens = r.maxCompletion
	}
	if r.suffix != "" {
		if err := r.fill(x); err != nil {
			return nil, err
		}
	}
	r.generation.MaxTokens = r.maxTokens
	r.generation.LogProbs = r.logProbs
	if err := r.settle(x); err != nil {
		return nil, err
	}
	if r.echo && r.logProbs != nil {
		r.generation.PromptLogProbs = new(max(*r.logProbs, valueOr(r.promptScores, 0)))
	}
	for i := range r.prompts {
		r.prompts[i].Special, r.prompts[i].Generation = r.special, r.generation
	}
	return r, nil
}

// fill turns the prompts into infill requests with r.suffix after the gap.
func (r *completionsRequest) fill(x *server.Exchange) error {
	if err := x.CheckSuffix(); err != nil {
		return err
	}
	switch {
	case r.echo:
		return fields.Invalid("echo", "echo is for a text that goes on, and suffix for one with a gap; leave one out")
	case r.special:
		return fields.Invalid("parse_special", "texts around a gap are plain text; leave out parse_special, or suffix")
	}
	for i := range r.prompts {
		p := &r.prompts[i]
		if p.PromptTokens != nil {
			return fields.Invalid("suffix", "suffix is for prompts that are texts; send strings, or leave it out")
		}
		p.Prompt, p.Infill = "", &realizar.Infill{Before: p.Prompt, After: r.suffix}
	}
	return nil
}

func valueOr[T any](p *T, v T) T {
	if p != nil {
		return *p
	}
	return v
}

// completions handles POST /v1/completions.
func completions(x *server.Exchange) error {
	r, err := readCompletions(x)
	if err != nil {
		return err
	}
	g, err := r.grammar()
	if err != nil {
		return err
	}
	if err := r.settleTransfer(x, len(r.prompts)); err != nil {
		return err
	}
	w := &completionsWriter{writer: newWriter(x, &r.settings, "cmpl-", "text_completion", appendUsage), request: r}
	return x.Answer(&server.Request{Prompts: r.prompts, Seeded: r.seeded, Param: "prompt", Grammar: g, Transfer: r.transfer}, w)
}
