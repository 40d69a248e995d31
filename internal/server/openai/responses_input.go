package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/server/fields"
)

// An inputItem is an item of a response's input: a message, reasoning, a call of a tool, or a
// call's output.
type inputItem struct {
	kind       string
	thought    string // content of reasoning
	summed     string // its summary
	message    chat.Message
	hasContent bool
	call       chat.ToolCall
	callID     string
	hasOutput  bool
	id         string // of the item that an item_reference names
}

// inputFields are the fields of items by type.
var inputFields = map[string]fields.List[inputItem]{
	"message": {
		fields.Text("type", `"message"`, func(i *inputItem) *string { return &i.kind }),
		fields.Text("role", "", func(i *inputItem) *string { return &i.message.Role }),
		fields.New("content", "a string, or a list of parts of type input_text or output_text", "", func(i *inputItem, v json.RawMessage) error {
			i.hasContent = true
			return readInputText(v, "content", &i.message.Content)
		}),
		fields.Ignored[inputItem]("id"),
		fields.Ignored[inputItem]("status"),
		fields.Ignored[inputItem]("phase"),
	},
	"function_call": {
		fields.Text("type", "", func(i *inputItem) *string { return &i.kind }),
		fields.Text("call_id", "", func(i *inputItem) *string { return &i.call.ID }),
		fields.Text("name", "", func(i *inputItem) *string { return &i.call.Name }),
		fields.New("arguments", "a JSON object in a string", "an empty object", func(i *inputItem, v json.RawMessage) error {
			if v[0] != '"' {
				return fields.ErrWrong
			}
			i.call.Arguments = v
			return nil
		}),
		fields.Ignored[inputItem]("parsed_arguments"), // OpenAI's clients add it to what they read
		fields.Ignored[inputItem]("id"),
		fields.Ignored[inputItem]("status"),
	},
	"reasoning": {
		fields.Text("type", "", func(i *inputItem) *string { return &i.kind }),
		fields.New("content", "a list of parts of type reasoning_text", "none", func(i *inputItem, v json.RawMessage) error {
			return readTextParts(v, "content", &i.thought, "reasoning_text", "text")
		}),
		fields.New("summary", "a list of parts of type summary_text, which count where there is no content", "none", func(i *inputItem, v json.RawMessage) error {
			return readTextParts(v, "summary", &i.summed, "summary_text")
		}),
		fields.Refused[inputItem]("encrypted_content", "thoughts are not encrypted here; send content"),
		fields.Ignored[inputItem]("id"),
		fields.Ignored[inputItem]("status"),
	},
	"item_reference": {
		fields.Text("type", "", func(i *inputItem) *string { return &i.kind }),
		fields.Text("id", "", func(i *inputItem) *string { return &i.id }),
	},
	"function_call_output": {
		fields.Text("type", "", func(i *inputItem) *string { return &i.kind }),
		fields.Text("call_id", "", func(i *inputItem) *string { return &i.callID }),
		fields.New("output", "a string, or a list of parts of type input_text", "", func(i *inputItem, v json.RawMessage) error {
			i.hasOutput = true
			return readInputText(v, "output", &i.message.Content)
		}),
		fields.Ignored[inputItem]("id"),
		fields.Ignored[inputItem]("status"),
	},
}

var inputPartFields = fields.List[part]{
	fields.Text("type", "", func(p *part) *string { return &p.kind }),
	fields.Text("text", "empty", func(p *part) *string { return &p.text }),
	fields.Ignored[part]("annotations"),
	fields.Ignored[part]("logprobs"),
	fields.Ignored[part]("parsed"), // OpenAI's clients add it to what they read
	fields.Ignored[part]("prompt_cache_breakpoint"),
}

// inputRoles are the roles of an input's messages.
var inputRoles = []string{"user", "assistant", "system", "developer"}

// readInput reads a conversation in the form of /v1/responses. referred returns the items that the
// input refers to; at names the reference in errors.
func readInput(v json.RawMessage, referred func(id, at string) (*inputItem, error)) ([]chat.Message, error) {
	if v[0] == '"' {
		m := chat.Message{Role: "user"}
		err := fields.ReadText(v, &m.Content)
		return []chat.Message{m}, err
	}
	list, err := fields.Elements(v)
	if err != nil {
		return nil, err
	}
	var messages []chat.Message
	thought := "" // the reasoning before the assistant's next message
	for i, v := range list {
		at := fmt.Sprintf("input[%d]", i)
		item, err := readItem(v, at)
		if err != nil {
			return nil, fields.Inside(err, at)
		}
		if item.kind == "item_reference" {
			if item, err = referred(item.id, at); err != nil {
				return nil, err
			}
		}
		if item.kind == "reasoning" {
			thought = item.asThought(thought)
			continue
		}
		// Chat templates take the calls of one turn as one message.
		if last := len(messages) - 1; item.kind == "function_call" && last >= 0 && messages[last].Role == "assistant" && thought == "" {
			messages[last].ToolCalls = append(messages[last].ToolCalls, item.call)
			continue
		}
		m := item.asMessage()
		if m.Role == "assistant" {
			m.Reasoning, thought = thought, ""
		}
		messages = append(afterThought(messages, &thought), m)
	}
	return afterThought(messages, &thought), nil
}

// afterThought appends a message that has only reasoning, if thought is not empty: the answer was
// cut off in its reasoning.
func afterThought(messages []chat.Message, thought *string) []chat.Message {
	if *thought == "" {
		return messages
	}
	m := chat.Message{Role: "assistant", Reasoning: *thought}
	*thought = ""
	return append(messages, m)
}

func readItem(v json.RawMessage, at string) (*inputItem, error) {
	var head struct{ Type *string }
	if err := json.Unmarshal(v, &head); err != nil && v[0] != '{' {
		return nil, fields.Invalid(at, "%s is %s; want an object", at, fields.Short(v))
	}
	i := &inputItem{kind: "message"}
	if head.Type != nil {
		i.kind = *head.Type
	}
	list, ok := inputFields[i.kind]
	if !ok {
		e := fields.Unsupported("an item of type %.50q is not supported; want message, reasoning, function_call, function_call_output or item_reference", i.kind)
		e.Param = at + ".type"
		return nil, e
	}
	if err := list.Decode(i, v, at); err != nil {
		return nil, err
	}
	return i, i.check(at)
}

func (i *inputItem) check(at string) error {
	role := i.message.Role
	switch {
	case i.kind == "message" && role == "":
		return fields.Missing(at + ".role")
	case i.kind == "message" && !slices.Contains(inputRoles, role):
		return fields.Invalid(at+".role", "%s.role is %.50q; want %s", at, role, strings.Join(inputRoles, ", "))
	case i.kind == "message" && !i.hasContent:
		return fields.Missing(at + ".content")
	case i.kind == "item_reference" && i.id == "":
		return fields.Missing(at + ".id")
	case i.kind == "function_call" && i.call.Name == "":
		return fields.Missing(at + ".name")
	case i.kind == "function_call" && i.call.ID == "", i.kind == "function_call_output" && i.callID == "":
		return fields.Missing(at + ".call_id")
	case i.kind == "function_call_output" && !i.hasOutput:
		return fields.Missing(at + ".output")
	}
	return nil
}

// asThought returns before with the item's reasoning appended.
func (i *inputItem) asThought(before string) string {
	text := i.thought
	if text == "" {
		text = i.summed
	}
	if before != "" && text != "" {
		before += "\n"
	}
	return before + text
}

// asMessage returns the item as a message for chat templates.
func (i *inputItem) asMessage() chat.Message {
	switch m := i.message; i.kind {
	case "function_call":
		return chat.Message{Role: "assistant", ToolCalls: []chat.ToolCall{i.call}}
	case "function_call_output":
		return chat.Message{Role: "tool", Content: m.Content, ToolCallID: i.callID}
	default:
		m.Role = knownRole(m.Role)
		return m
	}
}

// readInputText reads a text, or the parts of one, which are joined as in chats.
func readInputText(v json.RawMessage, at string, to *string) error {
	if v[0] == '"' {
		return fields.ReadText(v, to)
	}
	return readTextParts(v, at, to, "input_text", "output_text")
}

// readTextParts reads a text in parts of the given types.
func readTextParts(v json.RawMessage, at string, to *string, types ...string) error {
	list, err := fields.Elements(v)
	if err != nil {
		return err
	}
	texts := make([]string, len(list))
	for i, v := range list {
		at := fmt.Sprintf("%s[%d]", at, i)
		var head struct{ Type string }
		if err := json.Unmarshal(v, &head); err == nil && head.Type != "" && !slices.Contains(types, head.Type) {
			e := fields.Unsupported("a part of type %.50q is not supported: the model reads text alone", head.Type)
			e.Param = at + ".type"
			return e
		}
		var p part
		if err := inputPartFields.Decode(&p, v, at); err != nil {
			return err
		}
		if p.kind == "" {
			return fields.Missing(at + ".type")
		}
		texts[i] = p.text
	}
	*to = joinParts(texts)
	return nil
}

// A responseTool is a tool in a request for a response.
type responseTool struct {
	kind string
	chat.Tool
}

var responseToolFields = append(fields.List[responseTool]{
	fields.Text("type", "", func(t *responseTool) *string { return &t.kind }),
}, fields.Within(func(t *responseTool) *chat.Tool { return &t.Tool }, functionFields)...)

// readResponseTools reads the tools for the chat template.
func readResponseTools(v json.RawMessage) (Tools, error) {
	return readTools(v, func(v json.RawMessage, at string) (chat.Tool, error) {
		var t responseTool
		if err := responseToolFields.Decode(&t, v, at); err != nil {
			return t.Tool, fields.Inside(err, at)
		}
		switch {
		case t.kind == "":
			return t.Tool, fields.Missing(at + ".type")
		case t.Name == "":
			return t.Tool, fields.Missing(at + ".name")
		}
		return t.Tool, nil
	})
}
