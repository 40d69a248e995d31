package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// These are grammars, schemas and tools that take much more work than their size suggests.
// Each has a random name, so that the server cannot reuse the grammar of an earlier request.

// grammarAnswers are the permitted statuses: some requests are answered, and others are
// refused at once or when their grammar becomes too large during the answer.
var grammarAnswers = append([]int{http.StatusOK, http.StatusUnprocessableEntity}, refusals...)

// ask sends a chat with additional fields. The answer has few tokens.
func ask(ctx context.Context, url string, fields map[string]any) []int {
	fields["model"] = "demo"
	fields["messages"] = []any{map[string]any{"role": "user", "content": "Answer."}}
	fields["max_tokens"] = 40
	body, err := json.Marshal(fields)
	if err != nil {
		return []int{cut}
	}
	return post(ctx, url, "/v1/chat/completions", text(string(body)))
}

// other returns a name that no other request has.
func other() string { return fmt.Sprintf("n%d", rand.Uint64()) }

// schemas are small schemas that lead to very large grammars.
var schemas = []func() map[string]any{
	// Strings whose automata have many states.
	func() map[string]any {
		return object(map[string]any{other(): map[string]any{"type": "string", "pattern": "(a|b)*a(a|b){20}", "minLength": 100, "maxLength": 5000}})
	},
	// A string that must match many patterns at once.
	func() map[string]any {
		var all []any
		for i := range 12 {
			all = append(all, map[string]any{"type": "string", "pattern": fmt.Sprintf("(%s|x){%d,%d}y*", other(), i+1, 40*(i+1))})
		}
		return object(map[string]any{other(): map[string]any{"allOf": all}})
	},
	// Definitions that each refer twice to the one before, which makes 2^40 values.
	func() map[string]any {
		defs := map[string]any{"d0": map[string]any{"const": other()}}
		for i := range 40 {
			last := map[string]any{"$ref": fmt.Sprintf("#/$defs/d%d", i)}
			defs[fmt.Sprintf("d%d", i+1)] = map[string]any{"type": "array", "prefixItems": []any{last, last}, "minItems": 2, "maxItems": 2}
		}
		return map[string]any{"$ref": "#/$defs/d40", "$defs": defs}
	},
	// Alternatives that overlap and must exclude each other.
	func() map[string]any {
		var all []any
		for range 16 {
			all = append(all, object(map[string]any{other(): map[string]any{"type": "string", "pattern": "^[a-z]{1,40}$"}}))
		}
		return map[string]any{"oneOf": all}
	},
	// Thousands of properties and values.
	func() map[string]any {
		properties, values := map[string]any{}, []any{}
		for range 2000 {
			properties[other()] = map[string]any{"type": []string{"string", "integer", "null"}}
			values = append(values, other())
		}
		properties["values"] = map[string]any{"enum": values}
		return map[string]any{"type": "object", "properties": properties}
	},
	// Large counts of repetitions.
	func() map[string]any {
		return map[string]any{"type": "array", "items": map[string]any{"const": other()}, "minItems": 1_000_000, "maxItems": 2_000_000}
	},
}

// object returns the schema of an object that has all of these properties.
func object(properties map[string]any) map[string]any {
	var names []string
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return map[string]any{"type": "object", "properties": properties, "required": names, "additionalProperties": false}
}

// texts are grammars in notations other than JSON Schema, with the request field for each.
var texts = []func() (field, grammar string){
	func() (string, string) { return "guided_regex", other() + "(a?){500}a{500}" },
	func() (string, string) { return "guided_regex", other() + "(((a*)*b*)*c*)*[0-9]{1,900}" },
	func() (string, string) {
		return "grammar", `root ::= "` + other() + `" x` + "\n" + `x ::= x x | "a" | ""`
	},
	func() (string, string) {
		rules := `root ::= "` + other() + `" r0` + "\n"
		for i := range 200 {
			rules += fmt.Sprintf("r%d ::= r%d r%d | [a-z]\n", i, i+1, i+1)
		}
		return "grammar", rules + `r200 ::= "z"`
	},
	func() (string, string) {
		var all []string
		for range 5000 {
			all = append(all, `"`+other()+`"`)
		}
		return "grammar", "root ::= (" + strings.Join(all, " | ") + ")+"
	},
}

// grammarAttacks are the attacks that restrict the form of the answer.
var grammarAttacks = []attack{
	{"schemas that grow", func(ctx context.Context, url string) []int {
		schema := schemas[rand.IntN(len(schemas))]()
		return ask(ctx, url, map[string]any{"response_format": map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "a", "schema": schema}}})
	}, grammarAnswers},
	{"grammars with many ways to read a text", func(ctx context.Context, url string) []int {
		field, grammar := texts[rand.IntN(len(texts))]()
		return ask(ctx, url, map[string]any{field: grammar})
	}, grammarAnswers},
	{"a tool that must be called", func(ctx context.Context, url string) []int {
		tool := map[string]any{"name": other(), "parameters": object(map[string]any{other(): map[string]any{"type": "string"}, other(): map[string]any{"type": "integer", "maximum": 123456789}})}
		return ask(ctx, url, map[string]any{"tools": []any{map[string]any{"type": "function", "function": tool}}, "tool_choice": "required"})
	}, grammarAnswers},
}
