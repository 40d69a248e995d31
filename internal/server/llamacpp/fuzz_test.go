package llamacpp

import (
	"errors"
	"testing"

	"github.com/realizar/realizar/internal/server/fields"
)

// FuzzFields checks that any body is read or refused with an error that says why.
func FuzzFields(f *testing.F) {
	for _, body := range []string{
		`{"prompt":"a","n_predict":-1,"stop":["b"],"logit_bias":[[1,2],[3,false]],"samplers":["top_k"],"n_probs":2,"seed":-1}`,
		`{"prompt":[1,2],"logit_bias":{"1":2},"grammar":"root ::= \"a\"","response_fields":["content"]}`, `{"prompt":["a",[1]]}`, `{"prompt":[]}`,
		`{"input_prefix":"a","input_suffix":"b","prompt":"c","input_extra":[{"filename":"d","text":"e"}],"n_indent":4,"t_max_predict_ms":10}`, `{"input_extra":[null]}`, `[]`, `{`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, err := range map[string]error{
			"completion": completionFields.Decode(&completionRequest{}, body, ""),
			"infill":     infillFields.Decode(&infillRequest{}, body, ""),
		} {
			var e *fields.Error
			if err != nil && (!errors.As(err, &e) || e.Code == "" || e.Message == "") {
				t.Errorf("%s: %#v", name, err)
			}
		}
	})
}

// TestIndented checks that a text is cut before the first line with less than the required
// indentation.
func TestIndented(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"a":                    "a",
		"a\n    b\n\n    c\nd": "a\n    b\n\n    c",
		"a\n\t\t\t\tb\n":       "a\n\t\t\t\tb\n",
		"a\n  b\n    c":        "a",
		"a\n    \n":            "a\n    \n",
		"\nb":                  "",
	} {
		if got := text[:indented([]byte(text), 4)]; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
