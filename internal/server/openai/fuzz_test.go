package openai

import (
	"errors"
	"testing"

	"github.com/realizar/realizar/internal/server/fields"
)

// FuzzFields: whatever a body holds, it is read, or refused with an error that says
// why.
func FuzzFields(f *testing.F) {
	for _, body := range []string{
		`{"model":"a","messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}]}`,
		`{"model":"a","prompt":[[1,2],[3]],"stop":["a"],"logit_bias":{"1":-100},"stream":true,"stream_options":{"include_usage":true}}`,
		`{"model":"a","input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"a"}],
			"tools":[{"type":"function","name":"f","parameters":{}}],"metadata":{"a":"b"},"text":{"format":{"type":"text"}},"include":["message.output_text.logprobs"]}`,
		`{"model":"a","input":["a",[1,2]],"encoding_format":"base64","dimensions":64}`,
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
