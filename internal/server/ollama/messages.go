package ollama

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/server/fields"
)

// A message is a message of a chat request.
type message struct {
	chat.Message
	hasContent bool
	toolName   string
}

var messageFields = fields.List[message]{
	fields.Text("role", "", func(m *message) *string { return &m.Role }),
	fields.New("content", "a string", "none, if an assistant thinks or calls tools", func(m *message, v json.RawMessage) error {
		m.hasContent = true
		return fields.ReadText(v, &m.Content)
	}),
	fields.Text("thinking", "none", func(m *message) *string { return &m.Reasoning }),
	fields.New("tool_calls", "a list of calls", "none", readCalls),
	fields.Text("tool_name", "the first call that has no answer yet; for role tool", func(m *message) *string { return &m.toolName }),
	fields.Text("tool_call_id", "the call that tool_name says; for role tool", func(m *message) *string { return &m.ToolCallID }),
	noImages[message](),
}

// noImages returns the field images, which must be empty.
func noImages[R any]() fields.Field[R] {
	return fields.Only[R]("images", "[]", "the model reads text alone", "[]")
}

// A toolCall is a call in an assistant's message.
type toolCall struct {
	chat.ToolCall
	hasFunction bool
}

var callFields = fields.List[toolCall]{
	fields.Text("id", "none", func(c *toolCall) *string { return &c.ID }),
	fields.New("function", "an object with name and arguments", "", func(c *toolCall, v json.RawMessage) error {
		c.hasFunction = true
		return calledFields.Decode(&c.ToolCall, v, "function")
	}),
	fields.Only[toolCall]("type", `"function"`, "functions are what a model calls", `"function"`),
}

var calledFields = fields.List[chat.ToolCall]{
	fields.Ignored[chat.ToolCall]("index"),
	fields.Text("name", "", func(c *chat.ToolCall) *string { return &c.Name }),
	fields.Object("arguments", "a JSON object", "an empty object", func(c *chat.ToolCall) *json.RawMessage { return &c.Arguments }),
	fields.Ignored[chat.ToolCall]("description"),
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
		if !c.hasFunction || c.Name == "" {
			return fields.Missing(at + ".function.name")
		}
		m.ToolCalls = append(m.ToolCalls, c.ToolCall)
	}
	return nil
}

// roles are the roles of messages.
var roles = []string{"system", "user", "assistant", "tool"}

// readMessages reads a conversation.
func readMessages(v json.RawMessage) ([]chat.Message, error) {
	list, err := fields.Elements(v)
	if err != nil {
		return nil, err
	}
	messages := make([]chat.Message, len(list))
	open := calls{}
	for i, v := range list {
		at := fmt.Sprintf("messages[%d]", i)
		var m message
		if err := messageFields.Decode(&m, v, at); err != nil {
			return nil, fields.Inside(err, at)
		}
		if err := m.check(at); err != nil {
			return nil, err
		}
		open.add(&m)
		messages[i] = m.Message
	}
	return messages, nil
}

// calls are the calls of a conversation that have no result yet.
type calls struct {
	open  []chat.ToolCall
	count int // of all calls so far
}

// add gives ids to the calls of m that have none. If m is a tool's result, add finds the call that
// it answers.
func (c *calls) add(m *message) {
	for i := range m.ToolCalls {
		if m.ToolCalls[i].ID == "" {
			m.ToolCalls[i].ID = fmt.Sprintf("call%05d", c.count%100000) // Mistral's templates require this form
		}
		c.count++
	}
	if m.Role == "assistant" {
		c.open = slices.Clone(m.ToolCalls)
	}
	if m.Role != "tool" {
		return
	}
	at := slices.IndexFunc(c.open, func(call chat.ToolCall) bool {
		return (m.ToolCallID == "" || m.ToolCallID == call.ID) && (m.toolName == "" || m.toolName == call.Name)
	})
	m.Name = m.toolName
	if at < 0 {
		return
	}
	m.ToolCallID, m.Name = c.open[at].ID, c.open[at].Name
	c.open = slices.Delete(c.open, at, at+1)
}

func (m *message) check(at string) error {
	switch {
	case m.Role == "":
		return fields.Missing(at + ".role")
	case !slices.Contains(roles, m.Role):
		return fields.Invalid(at+".role", "%s.role is %.50q; want %s", at, m.Role, strings.Join(roles, ", "))
	case !m.hasContent && (m.Role != "assistant" || len(m.ToolCalls) == 0 && m.Reasoning == ""):
		return fields.Missing(at + ".content")
	case m.Role != "assistant" && len(m.ToolCalls) > 0:
		return fields.Invalid(at+".tool_calls", "%s.tool_calls: only an assistant calls tools", at)
	case m.Role != "assistant" && m.Reasoning != "":
		return fields.Invalid(at+".thinking", "%s.thinking: only an assistant's message has one", at)
	case m.Role != "tool" && (m.ToolCallID != "" || m.toolName != ""):
		return fields.Invalid(at+".tool_name", "%s.tool_name and tool_call_id: only a message of a tool answers a call", at)
	}
	return nil
}
