package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/server/fields"
)

// A message is a message in a request.
type message struct {
	role    string
	content json.RawMessage
	passing bool // it is removed when the user speaks next
}

var messageFields = fields.List[message]{
	fields.Text("role", "", func(m *message) *string { return &m.role }),
	fields.New("content", "a string, or a list of blocks", "", func(m *message, v json.RawMessage) error {
		m.content = v
		return nil
	}),
	fields.New("clear_at", `"never", or of role system "next_user_message"`, `"never"`, func(m *message, v json.RawMessage) error {
		m.passing = string(v) == `"next_user_message"`
		if !m.passing && string(v) != `"never"` {
			return fields.ErrWrong
		}
		return nil
	}),
	fields.Refused[message]("output_config", "it holds for a whole answer; write it into the request"),
}

// A block is a piece of a message.
type block struct {
	kind      string
	text      string // of a text, a thought or a tool's result
	hasText   bool
	signature string
	result    json.RawMessage // a tool's result, as sent
	failed    bool            // the tool failed
	answers   string
	call      chat.ToolCall
}

var blockType = fields.Text("type", "", func(b *block) *string { return &b.kind })

// blockText returns the field with a block's text.
func blockText(name string) fields.Field[block] {
	return fields.Text(name, "", func(b *block) *string {
		b.hasText = true
		return &b.text
	})
}

// blockFields are the fields of blocks by type.
var blockFields = map[string]fields.List[block]{
	"text": {
		blockType,
		blockText("text"),
		fields.Ignored[block]("cache_control"),
		fields.Ignored[block]("citations"),
	},
	"thinking": {
		blockType,
		blockText("thinking"),
		fields.Text("signature", "none", func(b *block) *string { return &b.signature }),
		fields.Ignored[block]("cache_control"),
	},
	"redacted_thinking": {
		blockType,
		fields.Ignored[block]("data"),
		fields.Ignored[block]("cache_control"),
	},
	"tool_use": {
		blockType,
		fields.Text("id", "", func(b *block) *string { return &b.call.ID }),
		fields.Text("name", "", func(b *block) *string { return &b.call.Name }),
		fields.Object("input", "an object", "", func(b *block) *json.RawMessage { return &b.call.Arguments }),
		fields.Ignored[block]("cache_control"),
		fields.Ignored[block]("caller"),
		fields.Ignored[block]("toolset_name"),
	},
	"tool_result": {
		blockType,
		fields.Text("tool_use_id", "", func(b *block) *string { return &b.answers }),
		fields.New("content", "a string, or a list of blocks of type text", "empty", func(b *block, v json.RawMessage) error {
			b.result = v
			return nil
		}),
		fields.Flag("is_error", "false", func(b *block) *bool { return &b.failed }),
		fields.Ignored[block]("cache_control"),
		fields.Ignored[block]("toolset_name"),
	},
}

// blocksOf lists the types of blocks that a message of each role, and a tool's result, can have.
var blocksOf = map[string][]string{
	"user":        {"text", "tool_result"},
	"assistant":   {"text", "thinking", "redacted_thinking", "tool_use"},
	"system":      {"text"},
	"tool_result": {"text"},
}

// readMessages reads a conversation. A message with results of tools becomes several.
func readMessages(v json.RawMessage) ([]chat.Message, error) {
	list, err := fields.Elements(v)
	if err != nil {
		return nil, err
	}
	called := map[string]string{} // names of tools by the ids of their calls
	messages := make([]chat.Message, 0, len(list))
	var passing []int // indexes of system messages to remove when the user speaks next
	for i, v := range list {
		at := fmt.Sprintf("messages[%d]", i)
		var m message
		if err := messageFields.Decode(&m, v, at); err != nil {
			return nil, fields.Inside(err, at)
		}
		switch {
		case m.role == "":
			return nil, fields.Missing(at + ".role")
		case m.role != "user" && m.role != "assistant" && m.role != "system":
			return nil, fields.Invalid(at+".role", "%s.role is %.50q; want user, assistant or system", at, m.role)
		case m.content == nil:
			return nil, fields.Missing(at + ".content")
		case m.passing && m.role != "system":
			return nil, fields.Invalid(at+".clear_at", "%s.clear_at is next_user_message, which is for role system; leave it out", at)
		}
		blocks, err := readContent(m.content, at+".content", m.role)
		if err != nil {
			return nil, err
		}
		if m.passing {
			passing = append(passing, len(messages))
		}
		if m.role == "user" && len(passing) > 0 {
			messages, passing = without(messages, passing), nil
		}
		messages = append(messages, asMessages(m.role, blocks, called)...)
	}
	return messages, nil
}

// readContent reads a message's content.
func readContent(v json.RawMessage, at, role string) ([]block, error) {
	if v[0] != '"' {
		blocks, err := readBlocks(v, at, role)
		return blocks, fields.Named(err, at, "a string, or a list of blocks", v)
	}
	b := block{kind: "text"}
	err := fields.ReadText(v, &b.text)
	return []block{b}, err
}

// readBlocks reads the blocks in the field at, of a message with the role.
func readBlocks(v json.RawMessage, at, role string) ([]block, error) {
	list, err := fields.Elements(v)
	if err != nil {
		return nil, err
	}
	blocks := make([]block, len(list))
	for i, v := range list {
		at := fmt.Sprintf("%s[%d]", at, i)
		if err := blocks[i].read(v, at, role); err != nil {
			return nil, fields.Inside(err, at)
		}
	}
	return blocks, nil
}

func (b *block) read(v json.RawMessage, at, role string) error {
	var head struct{ Type *string }
	if err := json.Unmarshal(v, &head); err != nil || v[0] != '{' {
		return fields.Invalid(at, "%s is %s; want an object with a type", at, fields.Short(v))
	}
	if head.Type == nil {
		return fields.Missing(at + ".type")
	}
	if !slices.Contains(blocksOf[role], *head.Type) {
		return refused(at+".type", *head.Type, role)
	}
	if err := blockFields[*head.Type].Decode(b, v, at); err != nil {
		return err
	}
	switch {
	case (b.kind == "text" || b.kind == "thinking") && !b.hasText:
		return fields.Missing(at + "." + b.kind)
	case b.kind == "tool_use" && b.call.ID == "":
		return fields.Missing(at + ".id")
	case b.kind == "tool_use" && b.call.Name == "":
		return fields.Missing(at + ".name")
	case b.kind == "tool_use" && b.call.Arguments == nil:
		return fields.Missing(at + ".input")
	case b.kind == "tool_result" && b.answers == "":
		return fields.Missing(at + ".tool_use_id")
	case b.result != nil:
		inner, err := readContent(b.result, at+".content", "tool_result")
		b.text = texts(inner)
		return err
	}
	return nil
}

// refused returns the error of a block that a message of the role cannot have.
func refused(param, kind, role string) error {
	why := "want " + strings.Join(blocksOf[role], ", ")
	switch {
	case blockFields[kind] != nil:
		return fields.Invalid(param, "a block of type %s is not allowed in %s content; %s", kind, role, why)
	case kind == "image", kind == "document":
		why = "the model reads text alone"
	case kind == "server_tool_use", kind == "container_upload", strings.HasSuffix(kind, "_tool_result"):
		why = "the server runs no tools of its own"
	}
	return unsupported(param, "a block of type %.50q is not supported: %s", kind, why)
}

// texts joins the texts of blocks, because chat templates take one string.
func texts(blocks []block) string {
	all := make([]string, len(blocks))
	for i := range blocks {
		all[i] = blocks[i].text
	}
	return strings.Join(all, "\n")
}

// asMessages converts a message for chat templates. Each result of a tool becomes a message with
// the tool's name.
func asMessages(role string, blocks []block, called map[string]string) []chat.Message {
	var all conversation
	for i := range blocks {
		m := chat.Message{Role: role}
		switch b := &blocks[i]; b.kind {
		case "text":
			m.Content = b.text
		case "thinking":
			m.Reasoning = b.thought()
		case "tool_use":
			called[b.call.ID] = b.call.Name
			m.ToolCalls = []chat.ToolCall{b.call}
		case "tool_result":
			m = chat.Message{Role: "tool", Content: b.given(), ToolCallID: b.answers, Name: called[b.answers]}
		}
		all.add(m)
	}
	if len(all) == 0 { // an empty message still shows who spoke
		all.add(chat.Message{Role: role})
	}
	return all
}

// given returns a tool's result in the form that the model sees.
func (b *block) given() string {
	switch {
	case !b.failed:
		return b.text
	case b.text == "":
		return "Error"
	}
	return "Error: " + b.text
}
