package ollama

import (
	"errors"
	"testing"

	"github.com/realizar/realizar/internal/server/fields"
)

// FuzzFields: whatever a body holds, it is read, or refused with an error that says
// why.
func FuzzFields(f *testing.F) {
	for _, body := range []string{
		`{"model":"a","messages":[{"role":"user","content":"a","images":[]},{"role":"assistant","thinking":"b","tool_calls":[{"id":"1","function":{"index":0,"name":"f","arguments":{}}}]},{"role":"tool","tool_name":"f","content":"c"}],"think":"low"}`,
		`{"model":"a","prompt":"b","system":"","context":[1,2],"raw":false,"format":{"type":"object"},"keep_alive":"5m","options":{"stop":["a"],"seed":-1,"num_predict":-2,"repeat_last_n":64}}`,
		`{"model":"a","input":["a","b"],"truncate":true,"dimensions":64}`, `{"model":"a","prompt":"","keep_alive":-1}`, `{"name":"a","verbose":true,"stream":false}`,
		`{"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"logprobs":true,"top_logprobs":2}`, `{"messages":[{"role":"tool"}]}`, `{"messages":[null]}`,
		`{"model":"a","from":"b","files":{"m.gguf":"sha256:00"},"license":[],"adapters":{}}`, `{"source":"a","destination":"b"}`, `[]`, `{`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, err := range map[string]error{
			"chat":       chatFields.Decode(&chatRequest{}, body, ""),
			"generate":   generateFields.Decode(&generateRequest{}, body, ""),
			"embed":      embedFields.Decode(&embedRequest{}, body, ""),
			"embeddings": embeddingsFields.Decode(&embeddingsRequest{}, body, ""),
			"show":       showFields.Decode(&showRequest{}, body, ""),
			"pull":       pullFields.Decode(&pullRequest{}, body, ""),
			"push":       pushFields.Decode(&pushRequest{}, body, ""),
			"create":     createFields.Decode(&createRequest{}, body, ""),
			"copy":       copyFields.Decode(&copyRequest{}, body, ""),
			"delete":     deleteFields.Decode(&deleteRequest{}, body, ""),
		} {
			var e *fields.Error
			if err != nil && (!errors.As(err, &e) || e.Code == "" || e.Message == "") {
				t.Errorf("%s: %#v", name, err)
			}
		}
	})
}
