package anthropic

import (
	"errors"
	"testing"

	"github.com/realizar/realizar/internal/server/fields"
)

// FuzzFields checks that any body is read or refused with an error that says why.
func FuzzFields(f *testing.F) {
	for _, body := range []string{
		`{"model":"a","max_tokens":5,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"realizar.YQ"},
			{"type":"redacted_thinking","data":"a"},{"type":"text","text":"b","citations":null},{"type":"tool_use","id":"1","name":"f","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":true,"content":[{"type":"text","text":"c"}]}]}]}`,
		`{"model":"a","system":[{"type":"text","text":"x-anthropic-billing-header: a","cache_control":{"type":"ephemeral"}}],"stop_sequences":["a"],"top_k":1,"top_p":0.5,"temperature":1,"stream":true}`,
		`{"tools":[{"name":"f","input_schema":{"type":"object"},"strict":true},{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true}}`,
		`{"thinking":{"type":"enabled","budget_tokens":1024,"display":"omitted"},"output_config":{"effort":"max","format":{"type":"json_schema","schema":{}}},"output_format":{"type":"json_schema","schema":{}},
			"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}}`,
		`{"messages":[null]}`, `{"messages":[{"role":"user","content":[[]]}]}`, `{"tools":[null]}`, `{"system":[]}`, `[]`, `{`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, list := range map[string]fields.List[request]{"messages": messagesFields, "count_tokens": askFields} {
			err := list.Decode(&request{}, body, "")
			var e *fields.Error
			if err != nil && (!errors.As(err, &e) || e.Code == "" || e.Message == "") {
				t.Errorf("%s: %#v", name, err)
			}
		}
	})
}
