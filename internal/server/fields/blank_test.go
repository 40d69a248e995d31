package fields

import (
	"encoding/json"
	"strings"
	"testing"
)

// Blank leaves the JSON of the other fields.
func TestBlank(t *testing.T) {
	for _, test := range []struct{ data, path, want string }{
		{`{"a":1}`, "a", `{}`},
		{`{"a":1,"b":2}`, "a", `{"b":2}`},
		{` { "b" : 2 , "a" : {"c":[1]} } `, "a", `{"b":2}`},
		{`{"b":2,"\u0061":1,"c":3}`, "a", `{"b":2,"c":3}`},
		{`{"l":[{"a":1},{"b":{"x":[],"a":2}}]}`, "l[1].b.a", `{"l":[{"a":1},{"b":{"x":[]}}]}`},
		{`{"l":[[{"a":1}]]}`, "l[0][0].a", `{"l":[[{}]]}`},
		{`{"a.b":1,"c":[{"d[0]":2}]}`, "c[0].d[0]", `{"a.b":1,"c":[{}]}`},
		{`{"a":1}`, "b", ""}, {`{"a":1}`, "", ""}, {`{"l":[1]}`, "l[1].a", ""}, {`{"l":[1]}`, "l[0]", ""}, {`{"l":[1]}`, "l[x", ""}, {`[`, "[0].a", ""}, {`{`, "a", ""}, {`{"a"`, "a", ""},
		{`{"a":1}`, "a[0].b", ""}, {`{"l":[]}`, "l[0].a", ""},
	} {
		data := []byte(test.data)
		ok := Blank(data, test.path)
		if got := strings.ReplaceAll(string(data), " ", ""); ok != (test.want != "") || ok && got != test.want {
			t.Errorf("%s without %q: %s, %v, want %s", test.data, test.path, got, ok, test.want)
		}
		if !ok && string(data) != test.data {
			t.Errorf("%s changed to %s", test.data, data)
		}
	}
}

// FuzzBlank checks that valid JSON stays valid and loses the field.
func FuzzBlank(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":1},{"b":2,"c":3}]}`), "a[1].b")
	f.Add([]byte(`{"a":1,"b":2}`), "b")
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		valid, length := json.Valid(data), len(data)
		if Blank(data, path) && valid && !json.Valid(data) || len(data) != length {
			t.Errorf("%q: %q", path, data)
		}
	})
}
