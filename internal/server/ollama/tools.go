package ollama

import (
	"encoding/json"
	"fmt"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/server/fields"
)

// tool is a tool as a chat request has it.
type tool struct {
	kind string
	chat.Tool
}

var toolFields = fields.List[tool]{
	fields.Text("type", `"function"`, func(t *tool) *string { return &t.kind }),
	fields.New("function", "an object with name, description and parameters", "", func(t *tool, v json.RawMessage) error {
		return functionFields.Decode(&t.Tool, v, "function")
	}),
	fields.Ignored[tool]("items"),
}

var functionFields = fields.List[chat.Tool]{
	fields.Text("name", "", func(t *chat.Tool) *string { return &t.Name }),
	fields.Text("description", "none", func(t *chat.Tool) *string { return &t.Description }),
	fields.Object("parameters", "a JSON schema", "none", func(t *chat.Tool) *json.RawMessage { return &t.Parameters }),
	fields.Flag("strict", "false", func(t *chat.Tool) *bool { return &t.Strict }),
}

// readTools reads the tools that a chat template is given.
func readTools(v json.RawMessage) ([]chat.Tool, error) {
	list, err := fields.Elements(v)
	if err != nil {
		return nil, err
	}
	tools := make([]chat.Tool, len(list))
	for i, v := range list {
		at := fmt.Sprintf("tools[%d]", i)
		var t tool
		if err := toolFields.Decode(&t, v, at); err != nil {
			return nil, fields.Inside(err, at)
		}
		switch {
		case t.kind != "" && t.kind != "function":
			return nil, &fields.Error{Param: at + ".type", Code: "unsupported_parameter", Message: fmt.Sprintf("%s.type is %.50q; want function", at, t.kind)}
		case t.Name == "":
			return nil, fields.Missing(at + ".function.name")
		}
		tools[i] = t.Tool
	}
	return tools, nil
}
