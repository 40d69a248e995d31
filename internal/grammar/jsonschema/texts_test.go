package jsonschema_test

import (
	"testing"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/jsonschema"
)

// TestTexts checks how valid values may be written.
func TestTexts(t *testing.T) {
	object := `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array","items":{"type":"number"}}},"required":["b"]}`
	for _, c := range []struct {
		name     string
		schema   string
		o        jsonschema.Options
		yes, not []string
	}{
		{"natural white space", object, jsonschema.Options{},
			[]string{`{"b":[]}`, `{"a": 1, "b": [1, 2.5e3]}`, "{\n  \"a\": 1,\n  \"b\": [\n    1,\n    2\n  ]\n}", "{\r\n\t\"b\": []\r\n}", `{ "b": [ 1 ] }`, `{"b":[],"z":null}`},
			[]string{`{"b" :[]}`, "{\n\n\"b\":[]}", `{"b":[1 ,2]}`, `{"b":  []}`, ` {"b":[]}`, `{"b":[]} `, `{"b":[],"a":1}`, `{"a":1.0,"b":[]}`}},
		{"compact", object, jsonschema.Options{Whitespace: jsonschema.CompactWhitespace},
			[]string{`{"a":1,"b":[1,2]}`}, []string{`{"a": 1,"b":[1,2]}`, `{"a":1, "b":[1,2]}`}},
		{"any white space", object, jsonschema.Options{Whitespace: jsonschema.AnyWhitespace},
			[]string{"{ \t\r\n\"a\" : 1 , \"b\"\n:[ 1\n,2 ] }"}, []string{` {"b":[]}`}},
		{"any order", object, jsonschema.Options{Order: jsonschema.AnyOrder},
			[]string{`{"b":[],"a":1}`, `{"z":1,"b":[],"a":1}`}, []string{`{"b":[],"a":1,"a":2}`, `{"a":1,"z":1}`, `{"z":1,"b":[],"z":1}`}},
		{"plain spelling", `{"enum":["é\n",1,{"k":0.5}]}`, jsonschema.Options{},
			[]string{`"é\n"`, `1`, `{"k":0.5}`, `{"k": 0.5}`}, []string{`"\u00e9\n"`, `"é\u000a"`, `1.0`, `{"\u006b":0.5}`, `{"k":0.50}`}},
		{"any spelling", `{"enum":["é/",1,{"k":0.5}]}`, jsonschema.Options{Spelling: jsonschema.AnySpelling},
			[]string{`"é/"`, `"\u00e9\/"`, `"\u00E9/"`, `1`, `1.00`, `{"\u006b":0.50}`}, []string{`"\u00e8/"`, `1e0`}},
		{"free strings", `{"type":"string","maxLength":3}`, jsonschema.Options{},
			[]string{`"abc"`, `"\u0061\/\n"`, `"😀😀😀"`, `"\ud83d\ude00"`, `""`}, []string{`"abcd"`, `"\ud83d"`, `"\ude00\ud83d"`, "\"\x01\"", "\"\xff\"", `"\x"`}},
		{"constrained strings", `{"type":"string","pattern":"^.$"}`, jsonschema.Options{},
			[]string{`"a"`, `"é"`, `"\""`, `"\u0001"`, `"/"`}, []string{`"\u0061"`, `"\/"`, `"ab"`, `"\n"`}},
		{"numbers", `{"type":"number"}`, jsonschema.Options{},
			[]string{`0`, `-0`, `1.5`, `1e5`, `1E-300`, `12345678901234567890`}, []string{`01`, `.5`, `1.`, `+1`, `NaN`, `1e1000`}},
		{"bounded numbers", `{"type":"number","exclusiveMinimum":0,"maximum":0.01}`, jsonschema.Options{},
			[]string{`0.01`, `0.010`, `1e-5`, `9.9e-3`, `1.0E-2`, `0.0000001`}, []string{`0`, `0.011`, `1.1e-2`, `1e-1`, `10e-3`, `-1`}},
		{"integers", `{"type":"integer","minimum":-5,"exclusiveMaximum":12,"multipleOf":3}`, jsonschema.Options{},
			[]string{`-3`, `0`, `9`}, []string{`-6`, `12`, `4`, `3.0`, `-5`}},
		{"no key twice", `{"additionalProperties":{"type":"null"},"type":"object","minProperties":2}`, jsonschema.Options{},
			[]string{`{"a":null,"b":null}`, `{"":null,"a":null,"ab":null}`}, []string{`{"a":null,"a":null}`, `{"a":null}`, `{"a":null,"\u0061":null}`}},
		{"order of first appearance", `{"allOf":[{"properties":{"b":true,"c":true}}],"properties":{"a":true},"type":"object"}`, jsonschema.Options{},
			[]string{`{"b":1,"c":2,"a":3}`, `{"b":1,"a":3}`}, []string{`{"a":3,"b":1}`}},
		{"unique strings", `{"type":"array","items":{"type":"string"},"uniqueItems":true}`, jsonschema.Options{},
			[]string{`["a", "b", "ab"]`, `[]`}, []string{`["a","a"]`, `["a","b","\u0061"]`}},
		{"unique values of a set", `{"type":"array","items":{"enum":["x","y",1]},"uniqueItems":true,"minItems":3}`, jsonschema.Options{},
			[]string{`["x",1,"y"]`}, []string{`["x","y"]`, `["x","y","x"]`, `["x","y",1,1]`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := compile([]byte(c.schema), c.o)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range c.yes {
				if !accepts(t, g, []byte(text)) {
					t.Errorf("%s is refused", text)
				}
			}
			for _, text := range c.not {
				if accepts(t, g, []byte(text)) {
					t.Errorf("%s is accepted", text)
				}
			}
		})
	}
}

// Bytes that are certain are forced.
func TestForced(t *testing.T) {
	g, err := compile([]byte(`{"properties":{"name":{"type":"string"},"kind":{"const":"cat"}},"required":["name","kind"],"additionalProperties":false,"type":"object"}`),
		jsonschema.Options{Whitespace: jsonschema.CompactWhitespace})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(g.Start().Forced(100)); got != `{"name":"` {
		t.Errorf("%q is forced first", got)
	}
	s, ok := g.Start().Bytes([]byte(`{"name":"a"`))
	if got := string(s.Forced(100)); !ok || got != `,"kind":"cat"}` {
		t.Errorf("%q is forced then", got)
	}
}

func TestAnyValue(t *testing.T) {
	for _, c := range []struct {
		name    string
		compile func(*grammar.Builder, jsonschema.Options) (grammar.Symbol, error)
		scalar  bool
	}{{"any", jsonschema.Any, true}, {"object", jsonschema.Object, false}} {
		b := grammar.NewBuilder(grammar.Limits{})
		s, err := c.compile(b, jsonschema.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g, err := b.Grammar(s)
		if err != nil {
			t.Fatal(err)
		}
		if text := `{"a": [1, {"b": null}, "x"], "c": {}}`; !accepts(t, g, []byte(text)) {
			t.Errorf("%s: %s is refused", c.name, text)
		}
		if got := accepts(t, g, []byte(`[true]`)); got != c.scalar {
			t.Errorf("%s: an array is accepted: %v", c.name, got)
		}
	}
}
