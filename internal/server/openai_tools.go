package server

import (
	"encoding/json"
	"fmt"

	"github.com/realizar/realizar/chat"
)

// tool is a tool as a chat request has it.
type tool struct {
	kind string
	chat.Tool
}

var toolFields = fields[tool]{
	text("type", "", func(t *tool) *string { return &t.kind }),
	{"function", "an object with name, description and parameters", "", func(t *tool, v json.RawMessage) error {
		return functionFields.decode(&t.Tool, v, "function")
	}},
}

var functionFields = fields[chat.Tool]{
	text("name", "", func(t *chat.Tool) *string { return &t.Name }),
	text("description", "none", func(t *chat.Tool) *string { return &t.Description }),
	{"parameters", "a JSON schema", "none", func(t *chat.Tool, v json.RawMessage) error {
		if v[0] != '{' {
			return errWrong
		}
		t.Parameters = v
		return nil
	}},
	only[chat.Tool]("strict", "false", "calls are not held to their schema yet", "false"),
}

// readTools reads the tools that a chat template is given.
func readTools(v json.RawMessage) ([]chat.Tool, error) {
	list, err := elements(v)
	if err != nil {
		return nil, err
	}
	tools := make([]chat.Tool, len(list))
	for i, v := range list {
		at := fmt.Sprintf("tools[%d]", i)
		var t tool
		if err := toolFields.decode(&t, v, at); err != nil {
			return nil, inside(err, at)
		}
		switch {
		case t.kind != "function":
			return nil, &Error{Status: 400, Param: at + ".type", Code: "unsupported_parameter", Message: fmt.Sprintf("%s.type is %.50q; want function", at, t.kind)}
		case t.Name == "":
			return nil, missing(at + ".function.name")
		}
		tools[i] = t.Tool
	}
	return tools, nil
}
