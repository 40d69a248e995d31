package turn

import (
	"encoding/json"
	"fmt"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// A notation builds grammars of the values of a schema in another notation than JSON: Python, or
// braces with unquoted keys.
type notation struct {
	m      *maker
	t      Tool
	syntax Syntax
	json   grammar.Symbol // the same values in JSON, if JSON is also allowed
}

// maxNesting limits the depth of nested schemas. Deeper schemas allow any value.
const maxNesting = 16

// value returns the symbol of a schema's values.
func (n notation) value(schema json.RawMessage, depth int) (grammar.Symbol, error) {
	m := n.m
	budget := maxSchemas
	set := allTypes
	if len(schema) > 0 {
		set = schemaTypes(schema, schema, &budget)
	}
	strange := unusual(schema)
	if n.syntax == SyntaxBraces && strange != "" && n.t.Strict && set&(stringType|arrayType|objectType) != 0 {
		return grammar.Symbol{}, fmt.Errorf("%w: the keyword %q cannot be strict in this form", ErrGrammar, strange)
	}
	var alternatives [][]grammar.Symbol
	if n.syntax == SyntaxPython {
		value := n.json
		if value.IsZero() {
			var err error
			if value, err = m.schema(n.t, schema, anyValue); err != nil {
				return grammar.Symbol{}, err
			}
		}
		alternatives = append(alternatives, []grammar.Symbol{value})
	}
	listed, isListed := constants(schema)
	switch {
	case isListed:
		var all []rx.Expr
		for _, v := range listed {
			if e, ok := n.constant(v); ok {
				all = append(all, e)
			}
		}
		if len(all) > 0 {
			alternatives = append(alternatives, []grammar.Symbol{m.b.Lexeme(m.s.Or(all...))})
		}
	case strange != "" && n.syntax == SyntaxPython:
		// Only JSON can express the schema exactly.
	default:
		own, err := n.types(schema, set, depth)
		if err != nil {
			return grammar.Symbol{}, err
		}
		alternatives = append(alternatives, own...)
	}
	if len(alternatives) == 0 {
		return grammar.Symbol{}, fmt.Errorf("%w: a value of this form cannot be %s", ErrGrammar, schema)
	}
	return m.choice("value", alternatives...), nil
}

// constant returns the expression of one value.
func (n notation) constant(v json.RawMessage) (rx.Expr, bool) {
	s := n.m.s
	var text string
	switch {
	case n.syntax == SyntaxBraces && json.Unmarshal(v, &text) == nil && v[0] == '"':
		q := n.m.f.Calls.Quote
		return s.Literal(q + text + q), true
	case string(v) == "true":
		return s.Or(s.Literal("true"), s.Literal("True")), true
	case string(v) == "false":
		return s.Or(s.Literal("false"), s.Literal("False")), true
	case string(v) == "null":
		return s.Or(s.Literal("null"), s.Literal("None")), true
	}
	return s.Literal(string(v)), typeOf(v)&(arrayType|objectType) == 0
}

// types returns the alternatives for each type in set.
func (n notation) types(schema json.RawMessage, set types, depth int) ([][]grammar.Symbol, error) {
	m := n.m
	var out [][]grammar.Symbol
	word := func(texts ...string) {
		var all []rx.Expr
		for _, t := range texts {
			all = append(all, m.s.Literal(t))
		}
		out = append(out, []grammar.Symbol{m.b.Lexeme(m.s.Or(all...))})
	}
	if set&booleanType != 0 {
		word("true", "false", "True", "False")
	}
	if set&nullType != 0 {
		word("null", "None")
	}
	if set&stringType != 0 {
		out = append(out, n.text())
	}
	if set&numberType != 0 && n.syntax == SyntaxBraces {
		s := schema
		if set != numberType || len(s) == 0 {
			s = json.RawMessage(`{"type":"number"}`)
		}
		number, err := m.schema(n.t, s, json.RawMessage(`{"type":"number"}`))
		if err != nil {
			return nil, err
		}
		out = append(out, []grammar.Symbol{number})
	}
	var parts struct {
		Items json.RawMessage `json:"items"`
	}
	_ = json.Unmarshal(schema, &parts)
	if set&arrayType != 0 {
		items, err := n.inner(parts.Items, depth)
		if err != nil {
			return nil, err
		}
		list := m.b.Rule("items")
		m.b.Define(list, []grammar.Symbol{items}, append(append([]grammar.Symbol{list}, n.comma()), items))
		out = append(out, append(m.text("["), m.choice("list", nil, []grammar.Symbol{list}), m.text("]")[0]))
	}
	if set&objectType != 0 {
		object, err := n.object(schema, depth)
		if err != nil {
			return nil, err
		}
		out = append(out, object)
	}
	return out, nil
}

// inner returns the symbol of the values of a nested schema.
func (n notation) inner(schema json.RawMessage, depth int) (grammar.Symbol, error) {
	n.json = grammar.Symbol{}
	if depth < maxNesting && len(schema) > 0 && string(schema) != "true" && string(schema) != "{}" {
		return n.value(schema, depth+1)
	}
	return n.m.b.Lazy("value", func() [][]grammar.Symbol {
		any, err := n.types(nil, allTypes, maxNesting)
		if err != nil {
			return nil
		}
		if n.syntax == SyntaxPython {
			if v, err := n.m.r.Schema(n.m.b, anyValue); err == nil {
				any = append(any, []grammar.Symbol{v})
			}
		}
		return any
	}), nil
}

func (n notation) comma() grammar.Symbol {
	s := n.m.s
	return n.m.b.Lexeme(s.Or(s.Literal(","), s.Literal(", ")))
}

// text returns the symbols of a string.
func (n notation) text() []grammar.Symbol {
	m := n.m
	if n.syntax == SyntaxBraces {
		q := m.f.Calls.Quote
		body := m.b.Lexeme(m.without(m.plainMark(q)))
		return append(append(m.text(q), body), m.text(q)...)
	}
	plain := m.s.Bytes(rx.BytesOf('\'', '\\').Or(rx.ByteRange(0, 0x1f)).Not())
	escape := m.s.Concat(m.s.Literal(`\`), m.s.Bytes(rx.BytesOf('\'', '"', '\\', 'n', 'r', 't')))
	quote := m.s.Literal("'")
	return []grammar.Symbol{m.b.Lexeme(m.s.Concat(quote, m.s.Repeat(m.s.Or(plain, escape), 0, -1), quote))}
}

// object returns the symbols of an object with the properties of a schema, or with any properties.
func (n notation) object(schema json.RawMessage, depth int) ([]grammar.Symbol, error) {
	m := n.m
	list, err := fieldsOf(schema)
	if err != nil {
		return nil, err
	}
	between := n.comma()
	var members grammar.Symbol
	if len(list) > 0 {
		parts := make([]grammar.Symbol, len(list))
		for i, f := range list {
			value, err := n.inner(withDefinitions(schema, f.schema), depth)
			if err != nil {
				return nil, err
			}
			parts[i] = m.seq("member", append(n.key(f.name), value)...)
		}
		members = m.anyOrder(list, parts, []grammar.Symbol{between})
	} else {
		var additional struct {
			Schema json.RawMessage `json:"additionalProperties"`
		}
		_ = json.Unmarshal(schema, &additional)
		value, err := n.inner(additional.Schema, depth)
		if err != nil {
			return nil, err
		}
		one := []grammar.Symbol{m.anyKey(n), value}
		list := m.b.Rule("members")
		m.b.Define(list, one, append([]grammar.Symbol{list, between}, one...))
		members = m.choice("object", nil, []grammar.Symbol{list})
	}
	return append(append(m.text("{"), members), m.text("}")...), nil
}

// key returns the symbols of a member's key and its colon.
func (n notation) key(name string) []grammar.Symbol {
	s := n.m.s
	if n.syntax == SyntaxBraces {
		return n.m.text(name + ":")
	}
	quoted := s.Or(s.Literal("'"+name+"'"), s.Literal(string(appendString(nil, []byte(name)))))
	return []grammar.Symbol{n.m.b.Lexeme(s.Concat(quoted, s.Or(s.Literal(":"), s.Literal(": "))))}
}

// anyKey returns the symbol of any key and its colon.
func (m *maker) anyKey(n notation) grammar.Symbol {
	word := rx.ByteRange('0', '9').Or(rx.ByteRange('a', 'z')).Or(rx.ByteRange('A', 'Z')).Or(rx.BytesOf('_', '-', '.', '$')).Or(rx.ByteRange(0x80, 0xff))
	name := m.s.Repeat(m.s.Bytes(word), 1, 64)
	colon := m.s.Or(m.s.Literal(":"), m.s.Literal(": "))
	if n.syntax == SyntaxPython {
		name = m.s.Or(m.s.Concat(m.s.Literal("'"), name, m.s.Literal("'")), m.s.Concat(m.s.Literal(`"`), name, m.s.Literal(`"`)))
	}
	return m.b.Lexeme(m.s.Concat(name, colon))
}
