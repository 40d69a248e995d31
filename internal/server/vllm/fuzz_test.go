package vllm

import (
	"errors"
	"testing"

	"github.com/realizar/realizar/internal/server/fields"
)

// FuzzFields checks that any body is read or refused with an error that says why.
func FuzzFields(f *testing.F) {
	for _, body := range []string{
		`{"prompt":"a","add_special_tokens":false}`,
		`{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f"}}],"chat_template_kwargs":{"a":1}}`,
		`{"tokens":[1,2]}`, `{"tokens":[]}`, `{"query":"a","documents":["b",{"text":"c"}],"top_n":1}`, `{"documents":[null]}`, `[]`, `{`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, err := range map[string]error{
			"rerank":     rerankFields.Decode(&rerankRequest{}, body, ""),
			"tokenize":   tokenizeFields.Decode(&tokenizeRequest{}, body, ""),
			"detokenize": detokenizeFields.Decode(&detokenizeRequest{}, body, ""),
		} {
			var e *fields.Error
			if err != nil && (!errors.As(err, &e) || e.Code == "" || e.Message == "") {
				t.Errorf("%s: %#v", name, err)
			}
		}
	})
}
