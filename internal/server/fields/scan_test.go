package fields

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

var texts = []string{
	`{}`, `[]`, `{"a":1}`, ` { "a" : [ 1 , 2.5e-3 , -0 , true , false , null , "x\u00e9\n\"" ] } `, `{"a":{"b":[{}]}}`,
	`"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `[1,]`, `[,1]`, `[1 2]`, `01`, `1.`, `.5`, `-`, `1e`, `1e+`, `+1`, `0x1`, `nul`, `tru`,
	`nullx`, `"\x"`, `"\u12g4"`, "\"\x01\"", "\"\x7f\"", `"` + strings.Repeat("a", 100) + `\"`, `"12345678"`, `"1234567\"8"`, "\"é\xff\"", `[[[[`, `]`, `}`, `{]`, `[}`, ``, ` `,
	strings.Repeat("[", 10000) + strings.Repeat("]", 10000), strings.Repeat("[", 10001) + strings.Repeat("]", 10001), `{"a":1}x`, `{"a":1,"a":2}`,
}

// valid reports whether encoding/json accepts a text.
func valid(data []byte) bool {
	i := blanks(data, 0)
	end, err := valueEnd(data, i)
	return err == nil && blanks(data, end) == len(data)
}

// FuzzScan checks that this package and encoding/json agree about which texts are JSON, the members
// of objects, the elements of lists and the texts of strings.
func FuzzScan(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want := json.Valid(data)
		if got := valid(data); got != want {
			t.Fatalf("%.200q: %v, want %v", data, got, want)
		}
		var members map[string]json.RawMessage
		found := map[string]json.RawMessage{}
		if err := Members(data, "", func(name string, value json.RawMessage) error {
			found[name] = value
			return nil
		}); err == nil {
			if json.Unmarshal(data, &members) != nil || len(found) != len(members) && utf8.Valid(data) {
				t.Errorf("%q: %d members, want %d", data, len(found), len(members))
			}
			for name, value := range members {
				if !utf8.Valid(data) {
					break // encoding/json replaces invalid UTF-8; servers reject it earlier
				}
				if string(found[name]) != string(value) {
					t.Errorf("%q: %s is %q, want %q", data, name, found[name], value)
				}
			}
		}
		if !want {
			return
		}
		value := json.RawMessage(strings.TrimSpace(string(data)))
		var elements []json.RawMessage
		if json.Unmarshal(value, &elements) == nil && value[0] == '[' && len(elements) <= maxElements {
			got, err := Elements(value)
			if err != nil || len(got) != len(elements) {
				t.Fatalf("%q: %q, %v", data, got, err)
			}
			for i := range got {
				if string(got[i]) != string(elements[i]) {
					t.Errorf("%q: element %d is %q, want %q", data, i, got[i], elements[i])
				}
			}
		}
		var text, got string
		if value[0] == '"' && json.Unmarshal(value, &text) == nil && utf8.Valid(value) {
			if err := ReadText(value, &got); err != nil || got != text {
				t.Errorf("%q: %q, %v, want %q", data, got, err, text)
			}
		}
	})
}

// BenchmarkScan reads a request with a long text.
func BenchmarkScan(b *testing.B) {
	data := []byte(`{"model":"m","prompt":"` + strings.Repeat("a", 30<<20) + `"}`)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if !valid(data) {
			b.Fatal("it is not valid")
		}
	}
}
