package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/realizar/realizar/chat"
)

// message is a message as a chat request has it.
type message struct {
	chat.Message
	hasContent bool
}

var messageFields = fields[message]{
	text("role", "", func(m *message) *string { return &m.Role }),
	{"content", "a string, or a list of parts of type text", "none, where an assistant calls tools", func(m *message, v json.RawMessage) error {
		m.hasContent = true
		return readContent(v, &m.Content)
	}},
	text("name", "none", func(m *message) *string { return &m.Name }),
	text("reasoning_content", "none", func(m *message) *string { return &m.Reasoning }),
	text("reasoning", "none", func(m *message) *string { return &m.Reasoning }),
	{"tool_calls", "a list of calls", "none", readCalls},
	text("tool_call_id", "required of role tool, and an error of others", func(m *message) *string { return &m.ToolCallID }),
	refused[message]("function_call", "it is older than tool_calls, which stands for it"),
	refused[message]("audio", "messages are text"),
	refused[message]("refusal", "models see no such field; write it into content"),
	ignored[message]("annotations"),
}

// part is a piece of a message's content.
type part struct{ kind, text string }

var partFields = fields[part]{
	text("type", "", func(p *part) *string { return &p.kind }),
	text("text", "empty", func(p *part) *string { return &p.text }),
	ignored[part]("cache_control"),
}

// readContent reads what a message says.
func readContent(v json.RawMessage, to *string) error {
	if v[0] == '"' {
		return readText(v, to)
	}
	list, err := elements(v)
	if err != nil {
		return err
	}
	texts := make([]string, len(list))
	for i, v := range list {
		var head struct{ Type string }
		if err := json.Unmarshal(v, &head); err == nil && head.Type != "" && head.Type != "text" {
			return unsupported("a part of type %.50q is not supported: the model reads text alone", head.Type)
		}
		var p part
		if err := partFields.decode(&p, v, fmt.Sprintf("content[%d]", i)); err != nil {
			return err
		}
		if p.kind == "" {
			return missing(fmt.Sprintf("content[%d].type", i))
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

var callFields = fields[toolCall]{
	text("id", "none", func(c *toolCall) *string { return &c.ID }),
	text("type", `"function"`, func(c *toolCall) *string { return &c.kind }),
	{"function", "an object with name and arguments", "", func(c *toolCall, v json.RawMessage) error {
		c.hasFunction = true
		return calledFields.decode(&c.ToolCall, v, "function")
	}},
	ignored[toolCall]("index"),
}

var calledFields = fields[chat.ToolCall]{
	text("name", "", func(c *chat.ToolCall) *string { return &c.Name }),
	{"arguments", "a JSON object in a string", "an empty object", func(c *chat.ToolCall, v json.RawMessage) error {
		if v[0] != '"' && v[0] != '{' {
			return errWrong
		}
		c.Arguments = v
		return nil
	}},
}

func readCalls(m *message, v json.RawMessage) error {
	list, err := elements(v)
	if err != nil {
		return err
	}
	for i, v := range list {
		at := fmt.Sprintf("tool_calls[%d]", i)
		var c toolCall
		if err := callFields.decode(&c, v, at); err != nil {
			return inside(err, at)
		}
		switch {
		case c.kind != "" && c.kind != "function":
			return unsupported("a call of type %.50q is not supported; want function", c.kind)
		case !c.hasFunction || c.Name == "":
			return missing(at + ".function.name")
		}
		m.ToolCalls = append(m.ToolCalls, c.ToolCall)
	}
	return nil
}

// roles are those that messages have.
var roles = []string{"system", "developer", "user", "assistant", "tool"}

// readMessages reads a conversation.
func readMessages(v json.RawMessage) ([]chat.Message, error) {
	list, err := elements(v)
	if err != nil {
		return nil, err
	}
	messages := make([]chat.Message, len(list))
	for i, v := range list {
		at := fmt.Sprintf("messages[%d]", i)
		var m message
		if err := messageFields.decode(&m, v, at); err != nil {
			return nil, inside(err, at)
		}
		if err := m.check(at); err != nil {
			return nil, err
		}
		m.Role = knownRole(m.Role)
		messages[i] = m.Message
	}
	return messages, nil
}

// knownRole is the role as chat templates know it: developer is a newer name of system.
func knownRole(role string) string {
	if role == "developer" {
		return "system"
	}
	return role
}

// inside completes the name of the field that an error is of, which is part of what is
// at at.
func inside(err error, at string) error {
	var e *Error
	if as(err, &e) && !strings.HasPrefix(e.Param, at) {
		whole := join(at, e.Param)
		e.Param, e.Message = whole, strings.Replace(e.Message, e.Param, whole, 1)
	}
	return err
}

func (m *message) check(at string) error {
	switch {
	case m.Role == "":
		return missing(at + ".role")
	case !slices.Contains(roles, m.Role):
		return invalid(at+".role", "%s.role is %.50q; want %s", at, m.Role, strings.Join(roles, ", "))
	case !m.hasContent && (m.Role != "assistant" || len(m.ToolCalls) == 0 && m.Reasoning == ""):
		return missing(at + ".content")
	case m.Role != "assistant" && len(m.ToolCalls) > 0:
		return invalid(at+".tool_calls", "%s.tool_calls: only an assistant calls tools", at)
	case m.Role != "assistant" && m.Reasoning != "":
		return invalid(at+".reasoning", "%s.reasoning: only an assistant's message has one", at)
	case m.Role == "tool" && m.ToolCallID == "":
		return missing(at + ".tool_call_id")
	case m.Role != "tool" && m.ToolCallID != "":
		return invalid(at+".tool_call_id", "%s.tool_call_id: only a message of a tool answers a call", at)
	}
	return nil
}
