package turn

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// calls returns the symbols of all calls of a turn. begun says that the prompt ends with the start
// of their mark.
func (m *maker) calls(begun bool) ([]grammar.Symbol, error) {
	c := &m.f.Calls
	lead := c.Begin
	if word(lead) == "" {
		lead = c.Call
	}
	var out []grammar.Symbol
	out = append(out, m.gap(lead[:len(lead)-len(strings.TrimLeft(lead, spaces))])...)
	if c.Optional != "" {
		out = append(out, m.choice("optional", nil, m.text(c.Optional)))
	}
	out = append(out, m.text(strings.TrimLeft(c.Begin, spaces))...)
	arguments := make([]grammar.Symbol, len(m.r.Tools))
	for i, t := range m.r.Tools {
		var err error
		if arguments[i], err = m.arguments(t); err != nil {
			return nil, fmt.Errorf("tool %q: %w", t.Name, err)
		}
	}
	one := func(pattern string) grammar.Symbol {
		var alternatives [][]grammar.Symbol
		for i, t := range m.r.Tools {
			alternatives = append(alternatives, m.call(pattern, t, arguments[i]))
		}
		return m.choice("call", alternatives...)
	}
	pattern := strings.TrimLeft(c.Call, spaces)
	call := one(pattern)
	first := call
	if begun {
		first = one(strings.TrimPrefix(pattern, m.r.Tail))
	}
	if m.r.Parallel && c.Several {
		list := m.b.Rule("calls")
		m.b.Define(list, []grammar.Symbol{first}, append(append([]grammar.Symbol{list}, m.text(c.Separator)...), call))
		first = list
	}
	out = append(out, first)
	if c.Begin == "" && c.End != "" {
		return append(out, m.choice("end", nil, m.text(c.End))), nil
	}
	return append(out, m.text(c.End)...), nil
}

// begun reports whether the prompt ends with the start of the mark that calls and text begin with.
func (m *maker) begun() bool {
	return m.r.Tail != "" && m.f.Calls.Begin == "" && strings.HasPrefix(strings.TrimLeft(m.f.Calls.Call, spaces), m.r.Tail)
}

// call returns the symbols of one call of a tool.
func (m *maker) call(pattern string, t Tool, arguments grammar.Symbol) []grammar.Symbol {
	var out []grammar.Symbol
	for _, p := range pieces(pattern) {
		switch p.hold {
		case "":
			out = append(out, m.text(p.text)...)
		case holdName:
			out = append(out, m.text(t.Name)...)
		case holdID:
			out = append(out, m.b.Lexeme(m.id()))
		case holdIndex:
			out = append(out, m.b.Lexeme(m.s.Repeat(m.s.Bytes(rx.ByteRange('0', '9')), 1, 3)))
		case holdArguments:
			out = append(out, arguments)
		}
	}
	return out
}

// id returns the expression of the ids that a model may give a call. Mistral's have nine letters.
func (m *maker) id() rx.Expr {
	word := rx.ByteRange('0', '9').Or(rx.ByteRange('a', 'z')).Or(rx.ByteRange('A', 'Z'))
	if strings.Contains(m.f.Calls.Begin+m.f.Calls.Call, "[TOOL_CALLS]") {
		return m.s.Repeat(m.s.Bytes(word), 9, 9)
	}
	return m.s.Repeat(m.s.Bytes(word.Or(rx.BytesOf('_', '-'))), 1, 64)
}

var anyObject = json.RawMessage(`{"type":"object"}`)

// schema returns the symbol of the JSON values of a schema. If the schema cannot be enforced and
// the tool is not strict, it uses fallback.
func (m *maker) schema(t Tool, schema, fallback json.RawMessage) (grammar.Symbol, error) {
	if len(schema) == 0 {
		schema = fallback
	}
	s, err := m.r.Schema(m.b, schema)
	if err != nil && !t.Strict {
		return m.r.Schema(m.b, fallback)
	}
	return s, err
}

// arguments returns the symbol of the arguments of a call of t.
func (m *maker) arguments(t Tool) (grammar.Symbol, error) {
	switch m.f.Calls.Syntax {
	case SyntaxJSON, SyntaxHarmony:
		return m.schema(t, t.Parameters, anyObject)
	case SyntaxString:
		if t.Strict {
			return grammar.Symbol{}, fmt.Errorf("%w: arguments that stand in a string cannot be strict", ErrGrammar)
		}
		return m.unquoted(), nil
	}
	return m.fields(t)
}

// unquoted returns the symbol of the inside of a JSON string whose quotes are in the pattern.
func (m *maker) unquoted() grammar.Symbol {
	plain := m.s.Bytes(rx.BytesOf('"', '\\').Or(rx.ByteRange(0, 0x1f)).Not())
	escape := m.s.Concat(m.s.Literal(`\`), m.s.Bytes(rx.BytesOf('"', '\\', '/', 'b', 'f', 'n', 'r', 't')))
	hex := m.s.Bytes(rx.ByteRange('0', '9').Or(rx.ByteRange('a', 'f')).Or(rx.ByteRange('A', 'F')))
	unicode := m.s.Concat(m.s.Literal(`\u`), m.s.Repeat(hex, 4, 4))
	return m.b.Lexeme(m.s.Repeat(m.s.Or(plain, escape, unicode), 0, -1))
}
