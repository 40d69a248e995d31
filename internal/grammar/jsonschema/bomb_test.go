package jsonschema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/grammar/jsonschema"
)

// Schemas that ask for too much fail with an error, or their rules are made lazily.
func TestBombs(t *testing.T) {
	chain := func(n int) string {
		var s strings.Builder
		s.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
		for i := range n {
			fmt.Fprintf(&s, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"minLength":1}]},`, i, i+1)
		}
		fmt.Fprintf(&s, `"d%d":true}}`, n)
		return s.String()
	}
	list := func(n int, f func(i int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = f(i)
		}
		return strings.Join(all, ",")
	}
	for _, c := range []struct {
		name, schema string
		ok           bool
	}{
		{"a long chain of references", chain(50_000), false},
		{"references that double", `{"$ref":"#/$defs/d0","$defs":{` + list(40, func(i int) string {
			return fmt.Sprintf(`"d%d":{"anyOf":[{"required":["a%d"],"$ref":"#/$defs/d%d"},{"required":["b%d"],"$ref":"#/$defs/d%d"}]}`, i, i, i+1, i, i+1)
		}) + `,"d40":{"type":"object"}}}`, false},
		{"a choice of choices", `{"allOf":[` + list(40, func(i int) string {
			return fmt.Sprintf(`{"anyOf":[{"required":["a%d"]},{"required":["b%d"]}]}`, i, i)
		}) + `]}`, false},
		{"oneOf with overlaps", `{"oneOf":[` + list(60, func(i int) string {
			return fmt.Sprintf(`{"properties":{"a%d":{"type":"string"},"b%d":{"type":"number"}}}`, i, i)
		}) + `]}`, false},
		{"a large enum", `{"enum":[` + list(100_000, func(i int) string { return fmt.Sprintf(`"value %d"`, i) }) + `]}`, true},
		{"a large enum of objects", `{"enum":[` + list(50_000, func(i int) string { return fmt.Sprintf(`{"a":%d}`, i) }) + `]}`, false},
		{"long strings", `{"minLength":1000000,"maxLength":2000000,"type":"string"}`, true},
		{"long arrays", `{"minItems":1000000,"maxItems":2000000,"items":{"type":"string","minLength":1000000},"type":"array"}`, true},
		{"many properties", `{"minProperties":1000000,"type":"object"}`, true},
		{"a counted repetition", `{"pattern":"^(a{1000}){1000}$"}`, true},
		{"counted repetitions within each other", `{"pattern":"^((((a{1,1000}){1,1000}b?){1,1000}c?){1,1000}d?){1,1000}$"}`, true},
		{"patterns against each other", `{"allOf":[` + list(12, func(i int) string { return fmt.Sprintf(`{"pattern":"a.{%d}b"}`, 20+i) }) + `]}`, false},
		{"patterns for properties", `{"patternProperties":{` + list(20, func(i int) string { return fmt.Sprintf(`"a.{%d}b":{"minimum":%d}`, i, i) }) + `}}`, false},
		{"contains within contains", `{"contains":{"const":1},"minContains":1000000,"maxContains":1000000,"allOf":[{"contains":{"const":2},"minContains":1000000}]}`, false},
		{"deep nesting", strings.Repeat(`{"items":`, 200) + `true` + strings.Repeat(`}`, 200), true},
		{"deeper nesting", strings.Repeat(`{"not":`, 100_000), false},
		{"multiples", `{"allOf":[{"multipleOf":99991},{"multipleOf":99989},{"multipleOf":99971}],"type":"integer","minimum":1}`, false},
		{"numbers with many digits", `{"minimum":1e400,"maximum":1e-400}`, false},
		{"many excluded properties", `{"not":{"anyOf":[` + list(2000, func(i int) string { return fmt.Sprintf(`{"required":["a%d"]}`, i) }) + `]},"type":"object"}`, true},
		{"many required properties", `{"type":"object","required":[` + list(20_000, func(i int) string { return fmt.Sprintf(`"a%d"`, i) }) + `]}`, true},
		{"many properties with schemas", `{"type":"object","properties":{` + list(20_000, func(i int) string { return fmt.Sprintf(`"a%d":{"minLength":%d}`, i, i) }) + `}}`, true},
		{"too many properties", `{"type":"object","properties":{` + list(30_000, func(i int) string { return fmt.Sprintf(`"a%d":{}`, i) }) + `}}`, false},
		{"many dependencies", `{"type":"object","dependentRequired":{` + list(30, func(i int) string { return fmt.Sprintf(`"a%d":["b%d"]`, i, i) }) + `}}`, false},
		{"a long tuple", `{"type":"array","prefixItems":[` + list(9_000, func(i int) string { return fmt.Sprintf(`{"minLength":%d}`, i) }) + `],"contains":{"const":7},"minContains":3}`, true},
		{"unique items of a large set", `{"type":"array","uniqueItems":true,"minItems":1500,"items":{"enum":[` + list(1600, func(i int) string { return fmt.Sprint(i) }) + `]}}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := compile([]byte(c.schema), jsonschema.Options{})
			if (err == nil) != c.ok {
				t.Errorf("error %v, want one: %v", err, !c.ok)
			}
			if err != nil && !named(err) {
				t.Errorf("an error of no known kind: %v", err)
			}
			t.Log(err)
		})
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"properties":{"a/b":{"format":"regex"}}}`, `schema at #/properties/a~1b/format: format is not supported: "regex": which texts are regular expressions cannot be said by rules`},
		{`{"properties":{"a":{"type":"objct"}}}`, `schema at #/properties/a/type: "objct" is none of null, boolean, integer, number, string, array, object`},
		{`{"additonalProperties":false}`, `schema at #/additonalProperties: additonalProperties is not supported: it is no keyword, and looks like additionalProperties; an annotation with this name begins with x- or _`},
		{`{"format":"datetime"}`, `schema at #/format: format is not supported: "datetime" is no format, and looks like date-time`},
		{`{"$ref":"other.json"}`, `schema at #/$ref: $ref is not supported: "other.json" is not in the schema: put what it means under $defs`},
		{`{"$ref":"#/$defs/x"}`, `schema at #/$ref: "#/$defs/x" means nothing in the schema: there is no "$defs"`},
		{`{"$ref":"#"}`, `schema at #: it refers to itself without end`},
		{`{"items":{"pattern":"("}}`, ``},
		{`{"uniqueItems":true,"type":"array"}`, `schema at #/uniqueItems: uniqueItems is not supported: the items may be arrays or objects, which are not compared; say that they are strings or numbers, or set maxItems to 1`},
		{`{"type":"string","minLength":5,"maxLength":4}`, `no value satisfies the schema`},
		{`{"type":"object","minProperties":1,"maxProperties":0}`, `no value satisfies the schema`},
		{`{"type":"array","minItems":1,"maxItems":0}`, `no value satisfies the schema`},
		{`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, `no value satisfies the schema`},
		{`{"a":1,"a":2}`, `schema at #: not JSON: the name "a" stands twice in one object at byte 10`},
		{`3`, `schema at #: a schema is an object or a boolean, not a number`},
	} {
		_, err := compile([]byte(c.schema), jsonschema.Options{})
		if err == nil || c.want != "" && err.Error() != c.want {
			t.Errorf("%s: error %v, want %s", c.schema, err, c.want)
		}
		var unsupported *jsonschema.UnsupportedError
		if c.want == "" && (!errors.As(err, &unsupported) || unsupported.Path != "#/items/pattern") {
			t.Errorf("%s: error %v", c.schema, err)
		}
	}
}

func TestStrict(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, ""},
		{`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"$ref":"#/$defs/b"}},"required":["a","b"],"additionalProperties":false,"$defs":{"b":{"enum":[1]}}}`, ""},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `In context=(), 'additionalProperties' is required to be supplied and to be false.`},
		{`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":false}},"required":["a"],"additionalProperties":false}`,
			`In context=('properties', 'a'), 'required' is required to be supplied and to be an array including every key in properties. Missing 'b'.`},
		{`{"type":"array"}`, `In context=(), schema must be a JSON Schema of 'type: "object"', got 'type: "array"'.`},
		{`{"type":"object","properties":{"a":{"oneOf":[]}},"required":["a"],"additionalProperties":false}`, `In context=('properties', 'a'), 'oneOf' is not permitted.`},
		{`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`, `In context=('properties', 'a'), schema must have a 'type' key.`},
	} {
		err := jsonschema.CheckStrict([]byte(c.schema))
		if got := fmt.Sprint(err); (err != nil || c.want != "") && got != c.want {
			t.Errorf("%s: %s, want %s", c.schema, got, c.want)
		}
	}
}
