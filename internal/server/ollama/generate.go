package ollama

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// A generateRequest is the body of POST /api/generate.
type generateRequest struct {
	settings
	prompt, system string
	suffix         string // the text after the gap that the answer fills
	raw            bool
	context        []int32
}

var generateFields = slices.Concat(fields.Within(func(r *generateRequest) *settings { return &r.settings }, settingsFields), fields.List[generateRequest]{
	fields.Text("prompt", "empty, which loads the model", func(r *generateRequest) *string { return &r.prompt }),
	fields.Text("system", "none", func(r *generateRequest) *string { return &r.system }),
	fields.New("context", "the token ids of an earlier answer, which the prompt continues", "none", func(r *generateRequest, v json.RawMessage) (err error) {
		r.context, err = fields.ReadIDs(v)
		return err
	}),
	fields.Flag("raw", "false: the prompt is a message, which the chat template writes", func(r *generateRequest) *bool { return &r.raw }),
	fields.Only[generateRequest]("template", `""`, "the model has a chat template of its own; send raw and the prompt as a whole", `""`),
	fields.Text("suffix", "none; the text after the gap that the answer fills, for models trained to fill gaps", func(r *generateRequest) *string { return &r.suffix }),
	noImages[generateRequest](),
	fields.Only[generateRequest]("width", "0", "the model writes text", "0"),
	fields.Only[generateRequest]("height", "0", "the model writes text", "0"),
	fields.Only[generateRequest]("steps", "0", "the model writes text", "0"),
})

// generate handles POST /api/generate.
func generate(x *server.Exchange) error {
	r, err := server.ReadFor(x, generateFields, func() *generateRequest { return &generateRequest{settings: newSettings(x)} })
	if err != nil {
		return err
	}
	if err := r.settle(x); err != nil {
		return err
	}
	w := newWriter(x, &r.settings, generateShape)
	if r.prompt == "" && r.suffix == "" {
		return w.load()
	}
	if err := r.check(x.Model().Vocab()); err != nil {
		return err
	}
	if r.suffix != "" {
		return r.explain(r.fill(x, w))
	}
	_, err = x.Model().ChatTemplate()
	if r.raw || errors.Is(err, realizar.ErrNoTemplate) {
		return r.explain(r.plain(x, w))
	}
	return r.explain(r.converse(x, w))
}

// check checks the request's fields against each other and the vocabulary.
func (r *generateRequest) check(vocab int) error {
	switch {
	case r.suffix != "" && (r.raw || r.system != "" || len(r.context) > 0):
		return fields.Invalid("suffix", "suffix is not for raw, system or context; leave these out, or suffix")
	case r.raw && r.system != "":
		return fields.Invalid("system", "a raw prompt has no system; leave one out")
	case r.raw && len(r.context) > 0:
		return fields.Invalid("context", "a raw prompt has no context; leave one out")
	case r.system != "" && len(r.context) > 0:
		return fields.Invalid("system", "system begins a conversation, and context continues one; leave one out")
	}
	for i, id := range r.context {
		if id < 0 || int(id) >= vocab {
			return fields.Invalid("context", "context has %d at index %d; the vocabulary has %d", id, i, vocab)
		}
	}
	return nil
}

// promptNames are the names of the fields of a conversation with one prompt.
var promptNames = server.ChatFields{Messages: "prompt", Effort: "think"}

// fill answers with the text between the prompt and the suffix.
func (r *generateRequest) fill(x *server.Exchange, w *writer) error {
	if err := x.CheckSuffix(); err != nil {
		return err
	}
	if err := r.noThought(); err != nil {
		return err
	}
	p := realizar.Request{Infill: &realizar.Infill{Before: r.prompt, After: r.suffix}, Generation: r.options.generation}
	return x.Answer(&server.Request{Prompts: []realizar.Request{p}, Seeded: r.options.seeded, Param: "prompt", Grammar: r.form}, w.begin())
}

// noThought refuses reasoning if no chat template begins the answer.
func (r *generateRequest) noThought() error {
	if r.effort != "" && r.effort != "none" {
		return fields.Invalid("think", "think is for the chat template, which raw prompts do not use; leave it out")
	}
	return nil
}

// plain answers a prompt without a chat template: a raw prompt, or one of a model that has no
// template.
func (r *generateRequest) plain(x *server.Exchange, w *writer) error {
	if err := r.noThought(); err != nil {
		return err
	}
	if r.system != "" {
		return fields.Invalid("system", "the model has no chat template, and so no system message; put it in prompt")
	}
	p := realizar.Request{Prompt: r.prompt, Special: r.raw, Generation: r.options.generation}
	if !r.raw {
		w.context = &memory{}
	}
	if len(r.context) > 0 {
		ids, err := encode(x, chat.Text{{Text: r.prompt, Caller: true}})
		if err != nil {
			return server.OfField("prompt", err)
		}
		p.Prompt, p.PromptTokens = "", slices.Concat(r.context, ids)
	}
	return x.Answer(&server.Request{Prompts: []realizar.Request{p}, Seeded: r.options.seeded, Param: "prompt", Grammar: r.form}, w.begin())
}

// converse answers a prompt as a message.
func (r *generateRequest) converse(x *server.Exchange, w *writer) error {
	c := &realizar.ChatRequest{Effort: r.effort, Generation: r.options.generation}
	if r.system != "" {
		c.Messages = append(c.Messages, chat.Message{Role: "system", Content: r.system})
	}
	c.Messages = append(c.Messages, chat.Message{Role: "user", Content: r.prompt})
	w.context = &memory{conversation: c, before: r.context}
	if len(r.context) == 0 {
		return x.Answer(&server.Request{Chat: c, Seeded: r.options.seeded, Fields: promptNames, Grammar: r.form}, w.begin())
	}
	p, err := resume(x, c, r.context)
	if err != nil {
		return err
	}
	return x.Answer(&server.Request{
		Prompts: []realizar.Request{{Prepared: p, Generation: r.options.generation}}, Seeded: r.options.seeded, Param: "prompt", Grammar: r.form,
	}, w.begin())
}
