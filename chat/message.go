package chat

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/jinja"
)

// A Message is one message of a conversation. The template does not see empty fields, except Role
// and Content.
type Message struct {
	// Role is "system", "user", "assistant", "tool", or another role of the template. The
	// well-known roles count as the template's text and may become part of a special token; see
	// [Span].
	Role    string
	Content string
	// Parts, if set, is the content as a list. Not every template supports one. Content must then
	// be empty.
	Parts []Part
	// Reasoning is the reasoning before an assistant's message, without the marks around it. The
	// template sees it under the name that it reads: reasoning_content, reasoning or thinking.
	Reasoning  string
	ToolCalls  []ToolCall // of an assistant
	ToolCallID string     // the call that a tool's message answers
	Name       string     // name of the tool or the speaker
}

// A Part is a piece of the content of a message. It is always text.
type Part struct {
	Text string
}

// A ToolCall is a call that an assistant made.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is a JSON object, or a JSON string that holds one. Empty means the empty object.
	// Templates see an object.
	Arguments json.RawMessage
}

// A Tool is a function that the model may call.
type Tool struct {
	Name        string
	Description string
	// Parameters is the JSON schema of the arguments. Its keys stay in order.
	Parameters json.RawMessage
	// Strict says that calls must match Parameters, or the request is rejected. The template does
	// not see it.
	Strict bool
}

// text returns a string as the caller's text.
func text(s string) jinja.Value { return jinja.String(s, false) }

// knownRoles are the roles that templates are written for.
var knownRoles = []string{
	"system", "user", "assistant", "tool", "developer", "function", "ipython", "observation", "model",
}

// roleText returns the role as the template sees it. Some templates, such as those of Phi-3 and
// GLM-4, build a special token from it: '<|' + message.role + '|>'. Tokens are only matched within
// the template's text. A well-known role therefore counts as the template's text: it is one of a
// few fixed words, with which a caller can express nothing else. Any other role stays the caller's
// text, since it might complete or contain a token of the caller's choice.
func roleText(role string) jinja.Value {
	return jinja.String(role, slices.Contains(knownRoles, role))
}

// value returns the message as the template sees it. reasoning is the key of the reasoning.
func (m *Message) value(reasoning string) (jinja.Value, error) {
	d := jinja.NewDict()
	d.Set("role", roleText(m.Role))
	switch {
	case m.Parts == nil:
		d.Set("content", text(m.Content))
	case m.Content != "":
		return nil, fmt.Errorf("%w: a message of role %q has both Content and Parts; set one of them", ErrRequest, m.Role)
	default:
		parts := make([]jinja.Value, len(m.Parts))
		for i, p := range m.Parts {
			part := jinja.NewDict()
			part.Set("type", text("text"))
			part.Set("text", text(p.Text))
			parts[i] = part
		}
		d.Set("content", jinja.NewList(parts...))
	}
	if m.Reasoning != "" {
		d.Set(reasoning, text(m.Reasoning))
	}
	if len(m.ToolCalls) > 0 {
		calls := make([]jinja.Value, len(m.ToolCalls))
		for i := range m.ToolCalls {
			c, err := m.ToolCalls[i].value()
			if err != nil {
				return nil, err
			}
			calls[i] = c
		}
		d.Set("tool_calls", jinja.NewList(calls...))
	}
	if m.ToolCallID != "" {
		d.Set("tool_call_id", text(m.ToolCallID))
	}
	if m.Name != "" {
		d.Set("name", text(m.Name))
	}
	return d, nil
}

func (c *ToolCall) value() (jinja.Value, error) {
	var arguments jinja.Value = jinja.NewDict()
	if len(c.Arguments) > 0 {
		v, err := jinja.FromJSON(c.Arguments, false)
		if err != nil {
			return nil, fmt.Errorf("%w: arguments of the call of tool %q: %w", ErrRequest, c.Name, err)
		}
		arguments = v
		if s, ok := v.(*jinja.Str); ok {
			// The form of the OpenAI API: an object written out.
			if inner, err := jinja.FromJSON([]byte(s.Text()), false); err == nil {
				arguments = inner
			}
		}
	}
	if _, ok := arguments.(*jinja.Dict); !ok {
		return nil, fmt.Errorf("%w: arguments of the call of tool %q are not a JSON object: %.100s", ErrRequest, c.Name, c.Arguments)
	}
	function := jinja.NewDict()
	function.Set("name", text(c.Name))
	function.Set("arguments", arguments)
	d := jinja.NewDict()
	if c.ID != "" {
		d.Set("id", text(c.ID))
	}
	d.Set("type", text("function"))
	d.Set("function", function)
	return d, nil
}

func (t *Tool) value() (jinja.Value, error) {
	function := jinja.NewDict()
	function.Set("name", text(t.Name))
	if t.Description != "" {
		function.Set("description", text(t.Description))
	}
	if len(t.Parameters) > 0 {
		v, err := jinja.FromJSON(t.Parameters, false)
		if err != nil {
			return nil, fmt.Errorf("%w: parameters of tool %q: %w", ErrRequest, t.Name, err)
		}
		function.Set("parameters", v)
	}
	d := jinja.NewDict()
	d.Set("type", text("function"))
	d.Set("function", function)
	return d, nil
}
