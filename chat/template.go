package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/realizar/realizar/internal/jinja"
)

// A Template is a compiled chat template. It is safe for concurrent use.
type Template struct {
	source    string
	compiled  *jinja.Template
	reasoning string // the key under which the template reads reasoning
}

// ParseTemplate compiles a chat template, such as the chat_template of a
// tokenizer_config.json or the tokenizer.chat_template of a GGUF file. The
// error matches ErrTemplate and names the line.
func ParseTemplate(source string) (*Template, error) {
	compiled, err := jinja.Parse("template", source)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	t := &Template{source: source, compiled: compiled, reasoning: "reasoning_content"}
	for _, name := range []string{"reasoning_content", "reasoning", "thinking"} {
		if compiled.Mentions(name) {
			t.reasoning = name
			break
		}
	}
	return t, nil
}

// Source returns the text the template was compiled from.
func (t *Template) Source() string { return t.source }

// TakesTools reports whether the template reads the tools of a request. If not, the model never
// sees the tools.
func (t *Template) TakesTools() bool { return t.compiled.Mentions("tools") }

// A Request is a conversation to render with its options. The zero value of each field but Messages
// is useful.
type Request struct {
	Messages []Message
	Tools    []Tool
	// NoGenerationPrompt omits the text that makes the model answer as the assistant: the template
	// ends with the last message.
	NoGenerationPrompt bool
	// ContinueFinal ends the text inside the last message, so that the model continues it instead
	// of answering. It implies NoGenerationPrompt.
	ContinueFinal bool
	// Documents are JSON objects for templates that answer from documents. Most expect a title and
	// a text.
	Documents []json.RawMessage
	// Vars are additional variables for the template, such as enable_thinking. They replace
	// variables of the same name from other fields: messages, tools, documents,
	// add_generation_prompt, and the names in Special, whose text is then the caller's. A variable
	// named like a function of the language, such as range or raise_exception, hides the function.
	Vars map[string]json.RawMessage
	// Special holds the special tokens by the names that templates use, such as bos_token. They
	// count as the template's text.
	Special map[string]string
	// Now returns the time that the template may print; nil means time.Now.
	Now func() time.Time
	// Reserve is called with a size in bytes before the template makes texts and lists of that
	// size. Rendering ends with its error. It may be nil.
	Reserve func(bytes int) error
}

// Render renders a conversation. The error matches ErrRequest, ErrRender, ErrRefused or ErrLimit.
// Soon after ctx ends, Render returns the error of ctx with its cause.
func (t *Template) Render(ctx context.Context, r *Request) (Text, error) {
	vars, size, err := t.variables(r)
	if err != nil {
		return nil, err
	}
	out, err := t.render(ctx, vars, size, r.Now, r.Reserve)
	if err != nil || !r.ContinueFinal {
		return out, err
	}
	return cutFinal(out)
}

// RenderJSON renders the template with the variables in a JSON object, all of which are the
// caller's text. Now is as in Request, and the errors are those of Render.
func (t *Template) RenderJSON(ctx context.Context, vars []byte, now func() time.Time) (Text, error) {
	v, err := jinja.FromJSON(vars, false)
	if err != nil {
		return nil, fmt.Errorf("%w: variables: %w", ErrRequest, err)
	}
	d, ok := v.(*jinja.Dict)
	if !ok {
		return nil, fmt.Errorf("%w: the variables are not a JSON object", ErrRequest)
	}
	return t.render(ctx, d, len(vars), now, nil)
}

// render renders with limits that grow with the size of the request, in bytes.
func (t *Template) render(ctx context.Context, vars *jinja.Dict, size int, now func() time.Time, reserve func(bytes int) error) (Text, error) {
	limits := jinja.Limits{
		Steps:  30e6 + 32*int64(size),
		Memory: 256<<20 + 256*int64(size),
		Output: 16<<20 + 16*int64(size),

		Reserve: reserve,
	}
	spans, err := t.compiled.Render(ctx, vars, jinja.Options{Now: now, Limits: limits})
	if err != nil {
		return nil, renderError(err)
	}
	return fromSpans(spans), nil
}

// messageBytes is the memory in bytes of the template's value of a short message.
const messageBytes = 2 << 10

// variables returns the template's variables and the size of their texts in bytes.
func (t *Template) variables(r *Request) (vars *jinja.Dict, size int, err error) {
	vars = jinja.NewDict()
	for _, name := range slices.Sorted(maps.Keys(r.Special)) {
		vars.Set(name, jinja.String(r.Special[name], true))
	}
	if r.Reserve != nil {
		if err := r.Reserve(messageBytes * (len(r.Messages) + len(r.Tools) + len(r.Documents))); err != nil {
			return nil, 0, err
		}
	}
	messages := make([]jinja.Value, len(r.Messages))
	for i := range r.Messages {
		m := r.Messages[i]
		size += len(m.Content) + len(m.Reasoning)
		for _, p := range m.Parts {
			size += len(p.Text)
		}
		for _, c := range m.ToolCalls {
			size += len(c.Arguments)
		}
		if r.ContinueFinal && i == len(r.Messages)-1 {
			if m, err = withMark(m); err != nil {
				return nil, 0, err
			}
		}
		if messages[i], err = m.value(t.reasoning); err != nil {
			return nil, 0, err
		}
	}
	vars.Set("messages", jinja.NewList(messages...))
	vars.Set("tools", jinja.None)
	if len(r.Tools) > 0 {
		tools := make([]jinja.Value, len(r.Tools))
		for i := range r.Tools {
			size += len(r.Tools[i].Parameters) + len(r.Tools[i].Description)
			if tools[i], err = r.Tools[i].value(); err != nil {
				return nil, 0, err
			}
		}
		vars.Set("tools", jinja.NewList(tools...))
	}
	vars.Set("documents", jinja.None)
	if len(r.Documents) > 0 {
		documents := make([]jinja.Value, len(r.Documents))
		for i, d := range r.Documents {
			size += len(d)
			if documents[i], err = jinja.FromJSON(d, false); err != nil {
				return nil, 0, fmt.Errorf("%w: document %d: %w", ErrRequest, i, err)
			}
		}
		vars.Set("documents", jinja.NewList(documents...))
	}
	vars.Set("add_generation_prompt", jinja.Bool(!r.NoGenerationPrompt && !r.ContinueFinal))
	for _, name := range slices.Sorted(maps.Keys(r.Vars)) {
		size += len(r.Vars[name])
		v, err := jinja.FromJSON(r.Vars[name], false)
		if err != nil {
			return nil, 0, fmt.Errorf("%w: variable %s: %w", ErrRequest, name, err)
		}
		vars.Set(name, v)
	}
	return vars, size, nil
}

// finalMark follows the text of a message to continue. The blank at its end shows whether the
// template strips messages.
const finalMark = "CONTINUE_FINAL_MESSAGE_MARK "

// withMark returns m with the mark after its text.
func withMark(m Message) (Message, error) {
	if len(m.ToolCalls) > 0 {
		return m, fmt.Errorf("%w: the last message calls tools, and no text goes on behind calls", ErrRequest)
	}
	if m.Parts == nil {
		m.Content += finalMark
		return m, nil
	}
	if len(m.Parts) == 0 {
		return m, fmt.Errorf("%w: the last message has no text to continue", ErrRequest)
	}
	m.Parts = slices.Clone(m.Parts)
	m.Parts[len(m.Parts)-1].Text += finalMark
	return m, nil
}

// cutFinal cuts a text at the mark.
func cutFinal(t Text) (Text, error) {
	whole := t.String()
	at := strings.LastIndex(whole, strings.TrimSpace(finalMark))
	if at < 0 {
		return nil, fmt.Errorf("%w: the template does not write the last message out, so that it cannot be continued", ErrRender)
	}
	if !strings.HasPrefix(whole[at:], finalMark) {
		at = len(strings.TrimRight(whole[:at], " \t\r\n"))
	}
	return t.cut(at), nil
}
