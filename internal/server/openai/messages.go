package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/server/fields"
)

// message is a message as a chat request has it.
type message struct {
	chat.Message
	hasContent bool
	called     *chat.ToolCall // its function_call
}

var messageFields = fields.List[message]{
	fields.Text("role", "", func(m *message) *string { return &m.Role }),
	fields.New("content", "a string, or a list of parts of type text", "none, where an assistant calls tools", func(m *message, v json.RawMessage) error {
		m.hasContent = true
		return readContent(v, &m.Content)
	}),
	fields.Text("name", "none", func(m *message) *string { return &m.Name }),
	fields.Text("reasoning_content", "none", func(m *message) *string { return &m.Reasoning }),
	fields.Text("reasoning", "none", func(m *message) *string { return &m.Reasoning }),
	fields.New("tool_calls", "a list of calls", "none", readCalls),
	fields.Text("tool_call_id", "required of role tool, and an error of others", func(m *message) *string { return &m.ToolCallID }),
	fields.New("function_call", "an object with name and arguments, in place of tool_calls", "none", func(m *message, v json.RawMessage) error {
		m.called = new(chat.ToolCall)
		return calledFields.Decode(m.called, v, "function_call")
	}),
	fields.Refused[message]("audio", "messages are text"),
	fields.Refused[message]("refusal", "models see no such field; write it into content"),
	fields.Ignored[message]("annotations"),
	fields.Ignored[message]("id"),
	fields.Ignored[message]("parsed"), // which OpenAI's clients add to what they read
}

// part is a piece of a message's content.
type part struct{ kind, text string }

var partFields = fields.List[part]{
	fields.Text("type", "", func(p *part) *string { return &p.kind }),
	fields.Text("text", "empty", func(p *part) *string { return &p.text }),
	fields.Ignored[part]("cache_control"),
}

// readContent reads what a message says.
func readContent(v json.RawMessage, to *string) error {
	if v[0] == '"' {
		return fields.ReadText(v, to)
	}
	list, err := fields.Elements(v)
	if err != nil {
		return err
	}
	texts := make([]string, len(list))
	for i, v := range list {
		var head struct{ Type string }
		if err := json.Unmarshal(v, &head); err == nil && head.Type != "" && head.Type != "text" {
			return fields.Unsupported("a part of type %.50q is not supported: the model reads text alone", head.Type)
		}
		var p part
		if err := partFields.Decode(&p, v, fmt.Sprintf("content[%d]", i)); err != nil {
			return err
		}
		if p.kind == "" {
			return fields.Missing(fmt.Sprintf("content[%d].type", i))
		}
		texts[i] = p.text
	}
	*to = joinParts(texts)
	return nil
}

// joinParts is what the parts of a message say, as chat templates take one string.
func joinParts(texts []string) string { return strings.Join(texts, "\n") }

// toolCall is a call that an assistant made before.
type toolCall struct {
	kind string
	chat.ToolCall
	hasFunction bool
}

var callFields = fields.List[toolCall]{
	fields.Text("id", "none", func(c *toolCall) *string { return &c.ID }),
	fields.Text("type", `"function"`, func(c *toolCall) *string { return &c.kind }),
	fields.New("function", "an object with name and arguments", "", func(c *toolCall, v json.RawMessage) error {
		c.hasFunction = true
		return calledFields.Decode(&c.ToolCall, v, "function")
	}),
	fields.Ignored[toolCall]("index"),
}

var calledFields = fields.List[chat.ToolCall]{
	fields.Text("name", "", func(c *chat.ToolCall) *string { return &c.Name }),
	fields.New("arguments", "a JSON object in a string", "an empty object", func(c *chat.ToolCall, v json.RawMessage) error {
		if v[0] != '"' && v[0] != '{' {
			return fields.ErrWrong
		}
		c.Arguments = v
		return nil
	}),
	fields.Ignored[chat.ToolCall]("parsed_arguments"), // which OpenAI's clients add to what they read
}

func readCalls(m *message, v json.RawMessage) error {
	list, err := fields.Elements(v)
	if err != nil {
		return err
	}
	for i, v := range list {
		at := fmt.Sprintf("tool_calls[%d]", i)
		var c toolCall
		if err := callFields.Decode(&c, v, at); err != nil {
			return fields.Inside(err, at)
		}
		switch {
		case c.kind != "" && c.kind != "function":
			return fields.Unsupported("a call of type %.50q is not supported; want function", c.kind)
		case !c.hasFunction || c.Name == "":
			return fields.Missing(at + ".function.name")
		}
		m.ToolCalls = append(m.ToolCalls, c.ToolCall)
	}
	return nil
}

// roles are those that messages have.
var roles = []string{"system", "developer", "user", "assistant", "tool", "function"}

// ReadMessages reads a conversation.
func ReadMessages(v json.RawMessage) ([]chat.Message, error) {
	list, err := fields.Elements(v)
	if err != nil {
		return nil, err
	}
	messages := make([]chat.Message, len(list))
	for i, v := range list {
		at := fmt.Sprintf("messages[%d]", i)
		var m message
		if err := messageFields.Decode(&m, v, at); err != nil {
			return nil, fields.Inside(err, at)
		}
		if err := m.check(at); err != nil {
			return nil, err
		}
		m.renew(messages[:i])
		m.Role = knownRole(m.Role)
		messages[i] = m.Message
	}
	return messages, nil
}

// renew makes a function_call of m a call of a tool, and a function's message a tool's,
// which answers the last call of that name before it.
func (m *message) renew(before []chat.Message) {
	if m.called != nil {
		m.called.ID = fmt.Sprintf("call%05d", len(before)%100000) // which has the form that Mistral's templates insist on
		m.ToolCalls = []chat.ToolCall{*m.called}
	}
	if m.Role != "function" {
		return
	}
	m.Role = "tool"
	for _, b := range slices.Backward(before) {
		for _, c := range slices.Backward(b.ToolCalls) {
			if c.Name == m.Name {
				m.ToolCallID = c.ID
				return
			}
		}
	}
}

// knownRole is the role as chat templates know it: developer is a newer name of system.
func knownRole(role string) string {
	if role == "developer" {
		return "system"
	}
	return role
}

func (m *message) check(at string) error {
	switch {
	case m.Role == "":
		return fields.Missing(at + ".role")
	case !slices.Contains(roles, m.Role):
		return fields.Invalid(at+".role", "%s.role is %.50q; want %s", at, m.Role, strings.Join(roles, ", "))
	case m.called != nil && len(m.ToolCalls) > 0:
		return fields.Invalid(at+".function_call", "%s has both function_call, which is older, and tool_calls; leave one out", at)
	case m.called != nil && m.Role != "assistant":
		return fields.Invalid(at+".function_call", "%s.function_call: only an assistant calls functions", at)
	case m.called != nil && m.called.Name == "":
		return fields.Missing(at + ".function_call.name")
	case !m.hasContent && (m.Role != "assistant" || len(m.ToolCalls) == 0 && m.called == nil && m.Reasoning == ""):
		return fields.Missing(at + ".content")
	case m.Role == "function" && m.Name == "":
		return fields.Missing(at + ".name")
	case m.Role != "assistant" && len(m.ToolCalls) > 0:
		return fields.Invalid(at+".tool_calls", "%s.tool_calls: only an assistant calls tools", at)
	case m.Role != "assistant" && m.Reasoning != "":
		return fields.Invalid(at+".reasoning", "%s.reasoning: only an assistant's message has one", at)
	case m.Role == "tool" && m.ToolCallID == "":
		return fields.Missing(at + ".tool_call_id")
	case m.Role != "tool" && m.ToolCallID != "":
		return fields.Invalid(at+".tool_call_id", "%s.tool_call_id: only a message of a tool answers a call", at)
	}
	return nil
}
