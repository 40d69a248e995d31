package openai

import (
	"errors"
	"testing"

	"github.com/realizar/realizar/internal/server/fields"
)

// FuzzFields checks that any body is read or refused with an error that says why.
func FuzzFields(f *testing.F) {
	for _, body := range []string{
		`{"model":"a","messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}]}`,
		`{"model":"a","prompt":[[1,2],[3]],"stop":["a"],"logit_bias":{"1":-100},"stream":true,"stream_options":{"include_usage":true}}`,
		`{"model":"a","input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"a"}],
			"tools":[{"type":"function","name":"f","parameters":{}}],"metadata":{"a":"b"},"text":{"format":{"type":"text"}},"include":["message.output_text.logprobs"]}`,
		`{"model":"a","input":["a",[1,2]],"encoding_format":"base64","dimensions":64}`,
		`{"model":"a","messages":[{"role":"assistant","reasoning":"b","function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"c"}],
			"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":{"type":"object"}}},"reasoning_effort":"low","thinking_token_budget":5,
			"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{}}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}}]}},"parallel_tool_calls":false}`,
		`{"prompt":"a","structured_outputs":{"json":"{}","regex":"a+","choice":["a"],"grammar":"root ::= \"a\"","json_object":true,"structural_tag":"{}","disable_any_whitespace":true}}`,
		`{"prompt":"a","guided_json":{},"guided_regex":"a","guided_choice":["a","b"],"guided_grammar":"start: \"a\"","grammar":"root ::= [a-z]","json_schema":true,"structural_tag":{"format":{}}}`,
		`{"input":[{"type":"reasoning","content":[{"type":"reasoning_text","text":"a"}],"summary":[{"type":"summary_text","text":"b"}]}],"text":{"format":{"type":"json_schema","name":"a","schema":{}}},
			"reasoning":{"effort":"high","summary":"auto"},"tool_choice":{"type":"function","name":"f"},"functions":[{"name":"f"}],"function_call":{"name":"f"}}`,
		`{"response_format":{"type":"structural_tag","structures":[],"triggers":[]}}`, `{"tool_choice":{"type":null}}`, `{"response_format":{}}`, `{"guided_choice":[]}`,
		`{"input":[[]]}`, `{"input":[null]}`, `{"tools":[null]}`, `[]`, `{`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, err := range map[string]error{
			"chat":        chatFields.Decode(&chatRequest{}, body, ""),
			"completions": completionsFields.Decode(&completionsRequest{}, body, ""),
			"responses":   responsesFields.Decode(&responsesRequest{}, body, ""),
			"embeddings":  embeddingsFields.Decode(&embeddingsRequest{}, body, ""),
		} {
			var e *fields.Error
			if err != nil && (!errors.As(err, &e) || e.Code == "" || e.Message == "") {
				t.Errorf("%s: %#v", name, err)
			}
		}
	})
}
