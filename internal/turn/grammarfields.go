package turn

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// A field is a property of an object's schema.
type field struct {
	name     string
	schema   json.RawMessage
	required bool
}

// maxFields limits the properties of a tool in forms that are not JSON.
const maxFields = 64

// fieldsOf returns the properties of an object's schema, in order.
func fieldsOf(schema json.RawMessage) ([]field, error) {
	var object struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if len(schema) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(schema, &object); err != nil {
		return nil, fmt.Errorf("%w: the schema of the arguments: %w", ErrGrammar, err)
	}
	required := map[string]bool{}
	for _, name := range object.Required {
		required[name] = true
	}
	var out []field
	if len(object.Properties) > 0 {
		d := json.NewDecoder(bytes.NewReader(object.Properties))
		if _, err := d.Token(); err != nil {
			return nil, fmt.Errorf("%w: properties: %w", ErrGrammar, err)
		}
		for d.More() {
			key, err := d.Token()
			var v json.RawMessage
			if err != nil || d.Decode(&v) != nil {
				return nil, fmt.Errorf("%w: properties are no object", ErrGrammar)
			}
			name, _ := key.(string)
			out = append(out, field{name, v, required[name]})
			delete(required, name)
		}
	}
	for _, name := range object.Required {
		if required[name] {
			out = append(out, field{name, nil, true})
			delete(required, name)
		}
	}
	if len(out) > maxFields {
		return nil, fmt.Errorf("%w: %d properties are more than the %d of this form", ErrGrammar, len(out), maxFields)
	}
	return out, nil
}

// plainKeywords are the keywords of an object's schema that fields enforces or that do not
// constrain values.
var plainKeywords = map[string]bool{
	"type": true, "properties": true, "required": true, "additionalProperties": true, "description": true,
	"title": true, "default": true, "examples": true, "$defs": true, "definitions": true, "$schema": true,
	"enum": true, "const": true, "items": true, "$comment": true, "nullable": true,
}

// unusual returns a keyword of schema that is not in plainKeywords, or "".
func unusual(schema json.RawMessage) string {
	var object map[string]json.RawMessage
	if json.Unmarshal(schema, &object) != nil {
		return ""
	}
	for k := range object {
		if !plainKeywords[k] {
			return k
		}
	}
	return ""
}

// fields returns the symbol of the arguments in a form that is not JSON, in any order.
func (m *maker) fields(t Tool) (grammar.Symbol, error) {
	if t.Strict {
		if k := unusual(t.Parameters); k != "" {
			return grammar.Symbol{}, fmt.Errorf("%w: the keyword %q of the arguments cannot be strict in a form that is not JSON", ErrGrammar, k)
		}
	}
	list, err := fieldsOf(t.Parameters)
	if err != nil {
		return grammar.Symbol{}, err
	}
	parts := make([]grammar.Symbol, len(list))
	for i, f := range list {
		if parts[i], err = m.argument(t, f); err != nil {
			return grammar.Symbol{}, fmt.Errorf("argument %q: %w", f.name, err)
		}
	}
	separator := m.f.Calls.ArgumentSeparator
	switch m.f.Calls.Syntax {
	case SyntaxPython:
		separator = ", "
	case SyntaxBraces:
		separator = ","
	}
	return m.anyOrder(list, parts, m.text(separator)), nil
}

// anyOrder returns the symbol of the parts in any order. Each part occurs at most once, required
// parts exactly once.
func (m *maker) anyOrder(list []field, parts, separator []grammar.Symbol) grammar.Symbol {
	type key struct {
		left  uint64
		first bool
	}
	var required uint64
	for i, f := range list {
		if f.required {
			required |= 1 << i
		}
	}
	// Rules for all subsets of the remaining parts would be too many; a text reaches few of them.
	var rest func(key) grammar.Symbol
	rest = func(k key) grammar.Symbol {
		return m.b.Lazy("arguments", func() [][]grammar.Symbol {
			var out [][]grammar.Symbol
			if k.left&required == 0 {
				out = append(out, nil)
			}
			for i := range parts {
				if k.left&(1<<i) == 0 {
					continue
				}
				var one []grammar.Symbol
				if !k.first {
					one = append(one, separator...)
				}
				out = append(out, append(one, parts[i], rest(key{left: k.left &^ (1 << i)})))
			}
			return out
		})
	}
	all := uint64(1)<<len(parts) - 1
	if len(parts) == 64 {
		all = ^uint64(0)
	}
	return rest(key{all, true})
}

// withDefinitions adds the definitions of root to a part of it.
func withDefinitions(root, schema json.RawMessage) json.RawMessage {
	var from, to map[string]json.RawMessage
	if json.Unmarshal(root, &from) != nil || json.Unmarshal(schema, &to) != nil || !bytes.Contains(schema, []byte("$ref")) {
		return schema
	}
	for _, k := range []string{"$defs", "definitions"} {
		if v, ok := from[k]; ok && to[k] == nil {
			to[k] = v
		}
	}
	out, err := json.Marshal(to)
	if err != nil {
		return schema
	}
	return out
}

var anyValue = json.RawMessage(`{}`)

// argument returns the symbol of one argument with its marks.
func (m *maker) argument(t Tool, f field) (grammar.Symbol, error) {
	budget := maxSchemas
	set := allTypes
	if len(f.schema) > 0 {
		set = schemaTypes(t.Parameters, f.schema, &budget)
	}
	schema := withDefinitions(t.Parameters, f.schema)
	c := &m.f.Calls
	if c.Syntax != SyntaxTagged {
		n := notation{m: m, t: t, syntax: c.Syntax}
		value, err := n.value(schema, 0)
		if err != nil {
			return grammar.Symbol{}, err
		}
		colon := "="
		if c.Syntax == SyntaxBraces {
			colon = ":"
		}
		return m.seq("argument", append(m.text(f.name+colon), value)...), nil
	}
	fill := func(pattern string, value grammar.Symbol) []grammar.Symbol {
		var out []grammar.Symbol
		for _, p := range pieces(pattern) {
			switch p.hold {
			case holdKey:
				out = append(out, m.text(f.name)...)
			case holdValue:
				out = append(out, value)
			default:
				out = append(out, m.text(p.text)...)
			}
		}
		return out
	}
	var alternatives [][]grammar.Symbol
	if set&stringType != 0 {
		raw, err := m.rawString(t, schema)
		if err != nil {
			return grammar.Symbol{}, err
		}
		alternatives = append(alternatives, fill(c.Argument, raw))
	}
	if set != stringType && (set&stringType == 0 || c.OtherArgument != "") {
		other := schema
		if set&stringType != 0 && len(schema) > 0 {
			other = json.RawMessage(`{"allOf":[` + string(schema) + `,{"not":{"type":"string"}}]}`)
		}
		value, err := m.schema(t, other, anyValue)
		if err != nil {
			return grammar.Symbol{}, err
		}
		if c.Values == SyntaxPython || c.Lists == SyntaxPython {
			n := notation{m: m, t: t, syntax: SyntaxPython, json: value}
			if value, err = n.value(schema, 0); err != nil {
				return grammar.Symbol{}, err
			}
		}
		pattern := c.Argument
		if c.OtherArgument != "" {
			pattern = c.OtherArgument
		}
		alternatives = append(alternatives, fill(pattern, value))
	}
	return m.choice("argument", alternatives...), nil
}

// rawString returns the symbol of an unquoted string between tags.
func (m *maker) rawString(t Tool, schema json.RawMessage) (grammar.Symbol, error) {
	if values, ok := constants(schema); ok {
		var all []rx.Expr
		for _, v := range values {
			var text string
			if json.Unmarshal(v, &text) == nil {
				all = append(all, m.s.Literal(text))
			} else {
				all = append(all, m.s.Literal(string(v)))
			}
		}
		return m.b.Lexeme(m.s.Or(all...)), nil
	}
	if t.Strict {
		if k := unusual(schema); k != "" {
			return grammar.Symbol{}, fmt.Errorf("%w: the keyword %q cannot be strict for a string between tags", ErrGrammar, k)
		}
	}
	c := &m.f.Calls
	_, after := around(c.Argument, holdValue)
	before, _ := around(c.Argument, holdKey)
	_, end := around(c.Call, holdArguments)
	if m.plainMark(after) == "" {
		return m.b.Lexeme(rx.Anything), nil
	}
	// As in Parser.argumentEnd: the mark and the text after it end a value.
	space := m.s.Repeat(m.s.Bytes(rx.BytesOf(' ', '\n', '\t', '\r')), 0, -1)
	var ends []rx.Expr
	for _, next := range []string{before, end} {
		if m.plainMark(next) != "" {
			ends = append(ends, m.s.Concat(rx.Anything, m.loose(after), space, m.loose(next), rx.Anything))
		}
	}
	return m.b.Lexeme(m.s.Not(m.s.Or(ends...))), nil
}

// loose returns the expression of a mark as the parser matches it: with any white space between its
// words.
func (m *maker) loose(mark string) rx.Expr {
	l := newLiteral(mark, nil, "")
	space := m.s.Repeat(m.s.Bytes(rx.BytesOf(' ', '\n', '\t', '\r')), 0, maxGap)
	var all []rx.Expr
	for i, w := range l.words {
		if i > 0 {
			all = append(all, space)
		}
		all = append(all, m.s.Literal(string(plain(w))))
	}
	return m.s.Concat(all...)
}

// constants returns the values that a schema enumerates.
func constants(schema json.RawMessage) ([]json.RawMessage, bool) {
	var s struct {
		Enum  []json.RawMessage `json:"enum"`
		Const json.RawMessage   `json:"const"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil, false
	}
	if len(s.Const) > 0 {
		return []json.RawMessage{s.Const}, true
	}
	return s.Enum, s.Enum != nil
}
