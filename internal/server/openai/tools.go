package openai

import (
	"encoding/json"
	"fmt"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/server/fields"
)

// toolsTake says what fields of tools take.
const toolsTake = "a list of tools of type function; others are left out, and the header X-Left-Out names them"

// A tool is a tool in a chat request.
type tool struct {
	kind string
	chat.Tool
}

var toolFields = fields.List[tool]{
	fields.Text("type", "", func(t *tool) *string { return &t.kind }),
	fields.New("function", "an object with name, description and parameters", "", func(t *tool, v json.RawMessage) error {
		return functionFields.Decode(&t.Tool, v, "function")
	}),
}

var functionFields = fields.List[chat.Tool]{
	fields.Text("name", "", func(t *chat.Tool) *string { return &t.Name }),
	fields.Text("description", "none", func(t *chat.Tool) *string { return &t.Description }),
	fields.Object("parameters", "a JSON schema", "none", func(t *chat.Tool) *json.RawMessage { return &t.Parameters }),
	fields.Flag("strict", "false: the parameters need not be a schema of OpenAI's strict mode", func(t *chat.Tool) *bool { return &t.Strict }),
}

// Tools holds the functions of a request, and the names of the tools that it is answered without,
// because the server would have to run them.
type Tools struct {
	Functions []chat.Tool
	LeftOut   []string // tools of other types, such as "tools[1] (web_search)"
	numbers   []int    // the indexes of Functions in the request
}

// readTools reads tools, each function with read. Tools of other types, which the client does not
// run itself, are left out.
func readTools(v json.RawMessage, read func(v json.RawMessage, at string) (chat.Tool, error)) (t Tools, err error) {
	list, err := fields.Elements(v)
	if err != nil {
		return t, err
	}
	for i, v := range list {
		at := fmt.Sprintf("tools[%d]", i)
		var head struct{ Type *string }
		if err := json.Unmarshal(v, &head); err == nil && head.Type != nil && *head.Type != "function" {
			t.LeftOut = append(t.LeftOut, fmt.Sprintf("%s (%.50s)", at, *head.Type))
			continue
		}
		one, err := read(v, at)
		if err != nil {
			return t, err
		}
		t.Functions, t.numbers = append(t.Functions, one), append(t.numbers, i)
	}
	return t, nil
}

// ReadTools reads the tools for the chat template.
func ReadTools(v json.RawMessage) (Tools, error) {
	return readTools(v, func(v json.RawMessage, at string) (chat.Tool, error) {
		var t tool
		if err := toolFields.Decode(&t, v, at); err != nil {
			return t.Tool, fields.Inside(err, at)
		}
		switch {
		case t.kind == "":
			return t.Tool, fields.Missing(at + ".type")
		case t.Name == "":
			return t.Tool, fields.Missing(at + ".function.name")
		}
		return t.Tool, nil
	})
}

// readFunctions reads functions, the predecessor of tools.
func readFunctions(v json.RawMessage) ([]chat.Tool, error) {
	list, err := fields.Elements(v)
	if err != nil {
		return nil, err
	}
	tools := make([]chat.Tool, len(list))
	for i, v := range list {
		at := fmt.Sprintf("functions[%d]", i)
		if err := functionFields.Decode(&tools[i], v, at); err != nil {
			return nil, fields.Inside(err, at)
		}
		if tools[i].Name == "" {
			return nil, fields.Missing(at + ".name")
		}
	}
	return tools, nil
}
