package jinja

import (
	"encoding/json"
	"errors"
	"testing"
)

// FuzzRender checks that Parse and Render do not panic, and that the spans of a rendering are what
// Text promises.
func FuzzRender(f *testing.F) {
	var data struct {
		Vars   json.RawMessage
		Groups map[string][]struct{ Template string }
	}
	readJSON(f, "testdata/language.json", &data)
	for _, cases := range data.Groups {
		for _, c := range cases {
			f.Add(c.Template)
		}
	}
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := Parse("fuzz", source)
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Line < 1 {
				t.Fatalf("Parse: %v", err)
			}
			return
		}
		got, err := tmpl.Render(t.Context(), mustJSON(t, string(data.Vars)), Options{
			Limits: Limits{Steps: 1e5, Memory: 4 << 20, Output: 1 << 20},
		})
		if err != nil {
			var re *RuntimeError
			if errors.As(err, &re) && re.Class == classInternal {
				t.Fatal(err)
			}
			return
		}
		checkSpans(t, got)
	})
}

// FuzzFromJSON checks that a value that is written by tojson is read as an equal value.
func FuzzFromJSON(f *testing.F) {
	for _, s := range []string{
		`{"a": [1, -2.5e3, "\u00e9\ud83d\ude00\n", null, true, false], "b": {}}`, `123456789012345678901234567890`,
		`[NaN, Infinity, -Infinity]`, `"\ud800"`, `[1,]`, `{"a":1,"a":2}`, `01`, `1.`, ` [ ] `, `"`, `[[[[`, `"\u12"`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := FromJSON([]byte(s), true)
		if err != nil {
			if !errors.Is(err, ErrJSON) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		vars := NewDict()
		vars.Set("v", v)
		got, err := render(t, `{{ v|tojson }}`, vars, Options{})
		if err != nil {
			return // an integer is too large, or the value too deep
		}
		again, err := FromJSON([]byte(got.String()), true)
		if err != nil {
			t.Fatalf("%q becomes %q: %v", s, got, err)
		}
		vars.Set("w", again)
		same, err := render(t, `{{ v == w or 'NaN' in v|tojson }}`, vars, Options{})
		if err != nil || same.String() != "True" {
			t.Fatalf("%q becomes %q, which is another value (%v)", s, got, err)
		}
	})
}
