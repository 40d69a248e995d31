package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// outputFields are the fields of output_config.
var outputFields = fields.List[request]{
	fields.New("effort", `"low", "medium", "high", "xhigh" or "max", which is passed to chat templates that support it`, "the chat template's default", func(r *request, v json.RawMessage) error {
		switch string(v) {
		case `"low"`, `"medium"`, `"high"`, `"xhigh"`, `"max"`:
			return fields.ReadText(v, &r.effort)
		}
		return fields.ErrWrong
	}),
	fields.New("format", "an object", "free text", readFormat("output_config.format")),
	fields.Refused[request]("task_budget", "the model does not see what is left of it; use max_tokens"),
}

// A format is the required form of an answer.
type format struct {
	kind   string
	schema json.RawMessage
}

var formatFields = fields.List[format]{
	fields.New("type", `"json_schema"`, "", func(f *format, v json.RawMessage) error {
		if string(v) != `"json_schema"` {
			return fields.ErrWrong
		}
		return fields.ReadText(v, &f.kind)
	}),
	fields.Object("schema", "a JSON schema", "", func(f *format) *json.RawMessage { return &f.schema }),
	fields.Ignored[format]("name"),
}

// readFormat returns a reader of the format in the field param.
func readFormat(param string) func(*request, json.RawMessage) error {
	return func(r *request, v json.RawMessage) error {
		var f format
		err := formatFields.Decode(&f, v, param)
		switch {
		case err != nil:
			return err
		case f.kind == "":
			return fields.Missing(param + ".type")
		case f.schema == nil:
			return fields.Missing(param + ".schema")
		}
		r.forms = append(r.forms, server.Grammar{Kind: server.JSONSchema, Text: f.schema, Param: param + ".schema"})
		return nil
	}
}

// managementFields are the fields of context_management.
var managementFields = fields.List[request]{
	fields.New("edits", "a list of edits of type clear_thinking_20251015: the chat template decides which thoughts of the conversation the model sees", "none", func(_ *request, v json.RawMessage) error {
		list, err := fields.Elements(v)
		if err != nil {
			return err
		}
		for i, v := range list {
			at := fmt.Sprintf("context_management.edits[%d].type", i)
			var head struct{ Type *string }
			if err := json.Unmarshal(v, &head); err != nil || head.Type == nil {
				return fields.Missing(at)
			}
			if *head.Type != "clear_thinking_20251015" {
				return unsupported(at, "an edit of type %.50q is not supported: nothing is left out of a conversation; shorten the messages", *head.Type)
			}
		}
		return nil
	}),
}
