package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/server/fields"
)

// A tool is one as a request has it.
type tool struct {
	kind string
	chat.Tool
}

var toolFields = fields.List[tool]{
	fields.Text("type", `"custom"`, func(t *tool) *string { return &t.kind }),
	fields.Text("name", "", func(t *tool) *string { return &t.Name }),
	fields.Text("description", "none", func(t *tool) *string { return &t.Description }),
	fields.Object("input_schema", "a JSON schema", "", func(t *tool) *json.RawMessage { return &t.Parameters }),
	fields.Flag("strict", "false: the tool takes any object if its schema cannot be enforced", func(t *tool) *bool { return &t.Strict }),
	fields.Only[tool]("defer_loading", "false", "the model sees all tools; send those alone that it may call", "false"),
	fields.Only[tool]("allowed_callers", `["direct"]`, "the model alone calls tools", `["direct"]`),
	fields.Refused[tool]("input_examples", "chat templates have no place for them; write them into description"),
	fields.Ignored[tool]("eager_input_streaming"),
	fields.Ignored[tool]("cache_control"),
}

// schemaOf is the field of a tool's schema.
func schemaOf(tool int) string { return fmt.Sprintf("tools[%d].input_schema", tool) }

// readTools reads the tools that a chat template is given.
func readTools(v json.RawMessage) ([]chat.Tool, error) {
	list, err := fields.Elements(v)
	if err != nil {
		return nil, err
	}
	tools := make([]chat.Tool, len(list))
	for i, v := range list {
		at := fmt.Sprintf("tools[%d]", i)
		var head struct{ Type *string }
		if err := json.Unmarshal(v, &head); err == nil && head.Type != nil && *head.Type != "custom" {
			return nil, unsupported(at+".type", "a tool of type %.50q is not supported: the server has no tools of its own; want type custom, with a name and an input_schema", *head.Type)
		}
		var t tool
		if err := toolFields.Decode(&t, v, at); err != nil {
			return nil, fields.Inside(err, at)
		}
		switch {
		case t.Name == "":
			return nil, fields.Missing(at + ".name")
		case t.Parameters == nil:
			return nil, fields.Missing(at + ".input_schema")
		}
		tools[i] = t.Tool
	}
	return tools, nil
}

// A toolChoice says whether an answer calls tools, and which.
type toolChoice struct {
	kind   string
	name   string
	single bool
}

var choiceFields = fields.List[toolChoice]{
	fields.New("type", `"auto", "any", "tool" or "none"`, "", func(c *toolChoice, v json.RawMessage) error {
		if _, ok := toolModes[string(v)]; !ok {
			return fields.ErrWrong
		}
		return fields.ReadText(v, &c.kind)
	}),
	fields.Text("name", "required of type tool, and an error of others", func(c *toolChoice) *string { return &c.name }),
	fields.Flag("disable_parallel_tool_use", "false", func(c *toolChoice) *bool { return &c.single }),
}

var toolModes = map[string]realizar.ToolMode{
	`"auto"`: realizar.ToolAuto, `"any"`: realizar.ToolRequired, `"tool"`: realizar.ToolNamed, `"none"`: realizar.ToolNone,
}

// apply has r follow the choice. The model sees the tools that it may call.
func (c *toolChoice) apply(r *realizar.ChatRequest) error {
	switch {
	case c.kind == "" && (c.name != "" || c.single):
		return fields.Missing("tool_choice.type")
	case c.kind == "":
		return nil
	case c.kind == "tool" && c.name == "":
		return fields.Missing("tool_choice.name")
	case c.kind != "tool" && c.name != "":
		return fields.Invalid("tool_choice.name", "tool_choice.name is for type tool, and tool_choice.type is %s; leave it out", c.kind)
	}
	r.SingleCall = c.single
	r.ToolChoice = realizar.ToolChoice{Mode: toolModes[`"`+c.kind+`"`], Name: c.name}
	switch r.ToolChoice.Mode {
	case realizar.ToolNone:
		r.Tools, r.ToolChoice = nil, realizar.ToolChoice{}
	case realizar.ToolRequired:
		if len(r.Tools) == 0 {
			return fields.Invalid("tool_choice", "tool_choice requires a call, and there are no tools")
		}
	case realizar.ToolNamed:
		if !slices.ContainsFunc(r.Tools, func(t chat.Tool) bool { return t.Name == c.name }) {
			return fields.Invalid("tool_choice.name", "tool_choice is of %.100q, which is none of tools", c.name)
		}
	}
	return nil
}
