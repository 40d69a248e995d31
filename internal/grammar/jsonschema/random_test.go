package jsonschema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/jsonschema"
)

var keys = []string{"a", "b", "c", "ab", ""}

// randomSchema draws a schema as decoded JSON.
func randomSchema(t *rapid.T, depth int) any {
	if depth == 0 {
		return leafSchema(t)
	}
	out := map[string]any{}
	sub := func() any { return randomSchema(t, depth-1) }
	list := func() []any {
		var all []any
		for range rapid.IntRange(1, 3).Draw(t, "branches") {
			all = append(all, sub())
		}
		return all
	}
	for range rapid.IntRange(1, 4).Draw(t, "keywords") {
		switch rapid.IntRange(0, 29).Draw(t, "keyword") {
		case 0:
			out["type"] = rapid.SampledFrom([]any{"object", "array", "string", "number", "integer", []any{"object", "null"}, []any{"array", "string", "boolean"}}).Draw(t, "type")
		case 1, 2, 3:
			out["properties"] = map[string]any{rapid.SampledFrom(keys).Draw(t, "k"): sub(), rapid.SampledFrom(keys).Draw(t, "k"): sub()}
		case 4, 5:
			out["required"] = distinct(t, keys)
		case 6:
			out["additionalProperties"] = sub()
		case 7:
			out["additionalProperties"] = false
		case 8:
			out["patternProperties"] = map[string]any{rapid.SampledFrom([]string{"^a", "b", "^.$", "c$"}).Draw(t, "p"): sub()}
		case 9:
			out["propertyNames"] = rapid.SampledFrom([]any{map[string]any{"pattern": "^[ab]*$"}, map[string]any{"enum": []any{"a", "c"}}, map[string]any{"maxLength": 1}, map[string]any{"not": map[string]any{"const": "b"}}}).Draw(t, "names")
		case 10:
			out["minProperties"] = rapid.IntRange(0, 3).Draw(t, "n")
		case 11:
			out["maxProperties"] = rapid.IntRange(0, 3).Draw(t, "n")
		case 12:
			out["dependentRequired"] = map[string]any{rapid.SampledFrom(keys).Draw(t, "k"): distinct(t, keys)}
		case 13:
			out["dependentSchemas"] = map[string]any{rapid.SampledFrom(keys).Draw(t, "k"): sub()}
		case 14, 15:
			out["items"] = sub()
		case 16:
			out["prefixItems"] = list()
		case 17:
			out["contains"] = sub()
			if rapid.Bool().Draw(t, "max") {
				out["maxContains"] = rapid.IntRange(0, 2).Draw(t, "n")
			}
			if rapid.Bool().Draw(t, "min") {
				out["minContains"] = rapid.IntRange(0, 2).Draw(t, "n")
			}
		case 18:
			out["minItems"] = rapid.IntRange(0, 3).Draw(t, "n")
		case 19:
			out["maxItems"] = rapid.IntRange(0, 3).Draw(t, "n")
		case 20:
			out["allOf"] = list()
		case 21:
			out["anyOf"] = list()
		case 22:
			out["oneOf"] = list()
		case 23:
			out["not"] = sub()
		case 24:
			out["if"], out["then"], out["else"] = sub(), sub(), sub()
		case 25:
			out["unevaluatedProperties"] = rapid.SampledFrom([]any{false, map[string]any{"type": "string"}}).Draw(t, "rest")
		case 26:
			out["unevaluatedItems"] = rapid.SampledFrom([]any{false, map[string]any{"type": "string"}}).Draw(t, "rest")
		case 27:
			out["uniqueItems"] = true
		case 28:
			out["$ref"] = "#"
			out["type"] = "object" // otherwise the recursion is endless more often than not
		case 29:
			out["enum"] = []any{randomValue(t, 2), randomValue(t, 1)}
		}
	}
	return out
}

func distinct(t *rapid.T, from []string) []any {
	var out []any
	for _, k := range from {
		if rapid.IntRange(0, 2).Draw(t, "take") == 0 {
			out = append(out, k)
		}
	}
	if out == nil {
		out = []any{}
	}
	return out
}

func leafSchema(t *rapid.T) any {
	text := rapid.SampledFrom([]string{
		`true`, `false`, `{"type":"string"}`, `{"type":"integer"}`, `{"type":"number"}`, `{"type":"null"}`, `{"type":"boolean"}`, `{"type":"object"}`, `{"type":"array"}`,
		`{"const":"a"}`, `{"const":1}`, `{"enum":["a","b",1,null]}`, `{"minLength":2}`, `{"maxLength":1}`, `{"pattern":"^a"}`, `{"pattern":"b$","type":"string"}`,
		`{"minimum":1}`, `{"maximum":2.5,"type":"number"}`, `{"exclusiveMinimum":0,"exclusiveMaximum":1}`, `{"multipleOf":0.5}`, `{"multipleOf":3,"type":"integer"}`,
		`{"const":{"a":1}}`, `{"const":[]}`, `{"enum":[[1],{"b":[null]},true]}`, `{"format":"date"}`, `{"not":{"type":"string"}}`,
	}).Draw(t, "leaf")
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// randomValue draws a JSON value of the kinds that random schemas constrain.
func randomValue(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	if depth == 0 {
		kind = rapid.IntRange(0, 5).Draw(t, "kind")
	}
	switch {
	case kind >= 8:
		out := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			out = append(out, randomValue(t, depth-1))
		}
		return out
	case kind >= 6:
		out := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			out[rapid.SampledFrom(append(keys, "d", "bb")).Draw(t, "key")] = randomValue(t, depth-1)
		}
		return out
	}
	return rapid.SampledFrom([]any{nil, true, false, 0, 1, 2, 3, -1, 0.5, 0.25, 1.5, 6, "", "a", "b", "ab", "abb", "c", "2024-02-29", "2023-02-29"}).Draw(t, "scalar")
}

func judge(schema []byte) (*santhosh.Schema, error) {
	v, err := santhosh.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := santhosh.NewCompiler()
	c.DefaultDraft(santhosh.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("mem:///schema.json", v); err != nil {
		return nil, err
	}
	return c.Compile("mem:///schema.json")
}

func valid(t *rapid.T, s *santhosh.Schema, text []byte) bool {
	v, err := santhosh.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s is not JSON: %v", text, err)
	}
	err = s.Validate(v)
	var invalid *santhosh.ValidationError
	if err != nil && !errors.As(err, &invalid) {
		t.Skip(err)
	}
	return err == nil
}

func drawSchema(t *rapid.T) []byte {
	text, err := json.Marshal(randomSchema(t, rapid.IntRange(1, 3).Draw(t, "depth")))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The grammar accepts what another validator finds valid, and nothing else.
func TestAgreesWithValidator(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := drawSchema(t)
		g, err := compile(schema, jsonschema.Options{Order: jsonschema.AnyOrder, Spelling: jsonschema.AnySpelling, Whitespace: jsonschema.CompactWhitespace})
		if err != nil && !errors.Is(err, jsonschema.ErrUnsatisfiable) {
			if !named(err) {
				t.Fatalf("%s: %v", schema, err)
			}
			t.Skip(err)
		}
		s, err := judge(schema)
		if err != nil {
			t.Skip(err)
		}
		for range 12 {
			text, err := json.Marshal(randomValue(t, 3))
			if err != nil {
				t.Fatal(err)
			}
			want := valid(t, s, text)
			got := false
			if g != nil {
				st, ok := g.Start().Bytes(text)
				if err := st.Err(); err != nil {
					t.Skip(err)
				}
				got = ok && st.Ends()
			}
			if got != want {
				t.Fatalf("schema %s: value %s: accepted %v, valid %v", schema, text, got, want)
			}
		}
	})
}

// A random walk through the grammar never reaches a dead end, and the text at its end is valid.
func TestWalksEndValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := drawSchema(t)
		o := jsonschema.Options{
			Order:      jsonschema.Order(rapid.IntRange(0, 1).Draw(t, "order")),
			Spelling:   jsonschema.Spelling(rapid.IntRange(0, 1).Draw(t, "spelling")),
			Whitespace: jsonschema.Whitespace(rapid.IntRange(0, 2).Draw(t, "whitespace")),
		}
		g, err := compile(schema, o)
		if err != nil {
			if !named(err) {
				t.Fatalf("%s: %v", schema, err)
			}
			t.Skip(err)
		}
		s, err := judge(schema)
		if err != nil {
			t.Skip(err)
		}
		for range 3 {
			text, err := walk(t, g)
			if err != nil {
				t.Fatalf("schema %s: after %q: %v", schema, text, err)
			}
			if text != nil && !valid(t, s, text) {
				t.Fatalf("schema %s: %s is not valid", schema, text)
			}
		}
	})
}

// walk returns a random text that the grammar accepts, or nil if the text becomes too long.
func walk(t *rapid.T, g *grammar.Grammar) ([]byte, error) {
	const often = `{}[]",:0123456789.-abcdetrufalsn\ `
	s := g.Start()
	var text []byte
	for len(text) < 300 {
		if s.Ends() && (len(text) > 40 || rapid.IntRange(0, 3).Draw(t, "end") == 0) {
			return text, nil
		}
		var able []byte
		for _, b := range []byte(often) {
			if _, ok := s.Bytes([]byte{b}); ok {
				able = append(able, b)
			}
		}
		for b := 0; b < 256 && able == nil; b++ {
			if _, ok := s.Bytes([]byte{byte(b)}); ok {
				able = append(able, byte(b))
			}
		}
		if able == nil {
			if s.Ends() {
				return text, nil
			}
			return text, errors.New("a dead end")
		}
		if len(text) > 60 {
			// Head for an end.
			for _, b := range []byte(`]}"`) {
				if bytes.IndexByte(able, b) >= 0 {
					able = []byte{b}
					break
				}
			}
		}
		b := rapid.SampledFrom(able).Draw(t, "byte")
		var ok bool
		if s, ok = s.Bytes([]byte{b}); !ok {
			return text, fmt.Errorf("%q is taken alone and not after", b)
		}
		if err := s.Err(); err != nil {
			return text, err
		}
		text = append(text, b)
	}
	if strings.Count(string(text), "") > 0 {
		return nil, nil
	}
	return text, nil
}

// Many goroutines may read texts with one grammar.
func TestGrammarIsShared(t *testing.T) {
	g, err := compile([]byte(`{"properties":{"a":{"type":"array","items":{"type":"string"},"uniqueItems":true},"b":{"$ref":"#"}},"patternProperties":{"^c":{"minimum":1}},"minProperties":2}`), jsonschema.Options{Order: jsonschema.AnyOrder})
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	for i := range 8 {
		done.Go(func() {
			text := fmt.Sprintf(`{"a": ["x%d", "y"], "b": {"c%d": 3, "d": null, "a": []}, "k%d": [{"a": 1, "b": 2}]}`, i, i, i)
			if !accepts(t, g, []byte(text)) {
				t.Errorf("%s is refused", text)
			}
			if twice := `{"k": 1, "k": 2}`; accepts(t, g, []byte(twice)) {
				t.Errorf("%s is accepted", twice)
			}
		})
	}
	done.Wait()
}
