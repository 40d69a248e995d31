package openai

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// A toolChoice says whether an answer calls tools, and which.
type toolChoice struct {
	realizar.ToolChoice
	allowed []string // names of tools, if limited
	limited bool
}

const toolChoiceTakes = `"auto", "none", "required", or an object of type function or allowed_tools`

var toolModes = map[string]realizar.ToolMode{`"auto"`: realizar.ToolAuto, `"none"`: realizar.ToolNone, `"required"`: realizar.ToolRequired}

// A choiceObject is a tool choice that is an object. Chats nest its members in another object,
// responses have them beside the type; both forms are accepted everywhere.
type choiceObject struct {
	toolChoice
	kind string
}

var namedChoiceFields = fields.List[choiceObject]{
	fields.Text("type", "", func(c *choiceObject) *string { return &c.kind }),
	fields.Text("name", "it is in function", func(c *choiceObject) *string { return &c.Name }),
	fields.New("function", "an object with name", "its name is beside type", func(c *choiceObject, v json.RawMessage) error {
		return calledNameFields.Decode(&c.Name, v, "function")
	}),
}

var calledNameFields = fields.List[string]{
	fields.Text("name", "", func(name *string) *string { return name }),
}

var allowedChoiceFields = append(fields.List[choiceObject]{
	fields.Text("type", "", func(c *choiceObject) *string { return &c.kind }),
	fields.New("allowed_tools", "an object with mode and tools", "they are beside type", func(c *choiceObject, v json.RawMessage) error {
		return allowedFields.Decode(c, v, "allowed_tools")
	}),
}, allowedFields...)

var allowedFields = fields.List[choiceObject]{
	fields.New("mode", `"auto" or "required"`, `"auto"`, func(c *choiceObject, v json.RawMessage) error {
		mode, ok := toolModes[string(v)]
		if !ok || mode == realizar.ToolNone {
			return fields.ErrWrong
		}
		c.Mode = mode
		return nil
	}),
	fields.New("tools", "a list of objects of type function", "", func(c *choiceObject, v json.RawMessage) error {
		list, err := fields.Elements(v)
		if err != nil {
			return err
		}
		c.limited = true
		for i, v := range list {
			at := fmt.Sprintf("tools[%d]", i)
			var one choiceObject
			if err := namedChoiceFields.Decode(&one, v, at); err != nil {
				return err
			}
			if one.kind != "function" || one.Name == "" {
				return fields.Invalid(at, "%s is %s; want an object of type function with a name", at, fields.Short(v))
			}
			c.allowed = append(c.allowed, one.Name)
		}
		return nil
	}),
}

// readToolChoice reads a tool_choice.
func readToolChoice(v json.RawMessage) (toolChoice, error) {
	if v[0] != '{' {
		mode, ok := toolModes[string(v)]
		if !ok {
			return toolChoice{}, fields.ErrWrong
		}
		return toolChoice{ToolChoice: realizar.ToolChoice{Mode: mode}}, nil
	}
	var head struct{ Type *string }
	if err := json.Unmarshal(v, &head); err != nil || head.Type == nil {
		return toolChoice{}, fields.Missing("tool_choice.type")
	}
	var c choiceObject
	switch *head.Type {
	case "function":
		c.Mode = realizar.ToolNamed
		if err := namedChoiceFields.Decode(&c, v, "tool_choice"); err != nil {
			return toolChoice{}, fields.Inside(err, "tool_choice")
		}
		if c.Name == "" {
			return toolChoice{}, fields.Missing("tool_choice.function.name")
		}
	case "allowed_tools":
		if err := allowedChoiceFields.Decode(&c, v, "tool_choice"); err != nil {
			return toolChoice{}, fields.Inside(err, "tool_choice")
		}
		if !c.limited {
			return toolChoice{}, fields.Missing("tool_choice.allowed_tools.tools")
		}
	default:
		e := fields.Unsupported("tool_choice.type is %.50q; want function or allowed_tools", *head.Type)
		e.Param = "tool_choice.type"
		return toolChoice{}, e
	}
	return c.toolChoice, nil
}

// readFunctionCall reads function_call, the predecessor of tool_choice.
func readFunctionCall(v json.RawMessage) (toolChoice, error) {
	if v[0] != '{' {
		mode, ok := toolModes[string(v)]
		if !ok || mode == realizar.ToolRequired {
			return toolChoice{}, fields.ErrWrong
		}
		return toolChoice{ToolChoice: realizar.ToolChoice{Mode: mode}}, nil
	}
	c := toolChoice{ToolChoice: realizar.ToolChoice{Mode: realizar.ToolNamed}}
	if err := calledNameFields.Decode(&c.Name, v, "function_call"); err != nil {
		return toolChoice{}, err
	}
	if c.Name == "" {
		return toolChoice{}, fields.Missing("function_call.name")
	}
	return c, nil
}

// apply applies the choice to r, so that the model sees only the tools that it may call. Errors use
// the names of f. parameters is the format of a schema's name, which takes the number of the tool
// in the request: the element of places, or the index in r.Tools if places is nil.
func (c *toolChoice) apply(r *realizar.ChatRequest, f *server.ChatFields, parameters string, places []int) error {
	numbers := make([]int, len(r.Tools)) // the old indexes of the tools that stay
	for i := range numbers {
		numbers[i] = i
	}
	f.Parameters = func(tool int) string {
		if number := numbers[tool]; number < len(places) {
			return fmt.Sprintf(parameters, places[number])
		}
		return fmt.Sprintf(parameters, numbers[tool])
	}
	for _, name := range c.allowed {
		if !slices.ContainsFunc(r.Tools, func(t chat.Tool) bool { return t.Name == name }) {
			return fields.Invalid(f.ToolChoice, "%s allows %.100q, which is not one of %s", f.ToolChoice, name, f.Tools)
		}
	}
	if c.limited {
		numbers = slices.DeleteFunc(numbers, func(i int) bool { return !slices.Contains(c.allowed, r.Tools[i].Name) })
		var tools []chat.Tool
		for _, i := range numbers {
			tools = append(tools, r.Tools[i])
		}
		r.Tools = tools
	}
	switch r.ToolChoice = c.ToolChoice; c.Mode {
	case realizar.ToolNone:
		r.Tools, r.ToolChoice = nil, realizar.ToolChoice{}
	case realizar.ToolRequired:
		if len(r.Tools) == 0 {
			return fields.Invalid(f.ToolChoice, "%s requires a call, and there are no %s", f.ToolChoice, f.Tools)
		}
	case realizar.ToolNamed:
		if !slices.ContainsFunc(r.Tools, func(t chat.Tool) bool { return t.Name == c.Name }) {
			return fields.Invalid(f.ToolChoice, "%s is of %.100q, which is not one of %s", f.ToolChoice, c.Name, f.Tools)
		}
		r.SingleCall = true
	}
	return nil
}
