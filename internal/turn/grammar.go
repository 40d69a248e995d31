package turn

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// ErrGrammar reports that a form cannot enforce a request.
var ErrGrammar = errors.New("turn: calls cannot be enforced")

// A Choice says whether a turn may or must call tools.
type Choice uint8

// The kinds of Choice.
const (
	ChoiceAuto     Choice = iota // text, or text and then calls
	ChoiceNone                   // only text
	ChoiceRequired               // calls
)

// A Tool is a tool of a GrammarRequest.
type Tool struct {
	chat.Tool
	// Strict makes it an error if a schema cannot be enforced exactly. Otherwise such arguments may
	// be any object.
	Strict bool
}

// A GrammarRequest says which turns a grammar allows.
type GrammarRequest struct {
	Tools    []Tool
	Choice   Choice
	Name     string // the only tool that may be called; empty: all
	Parallel bool   // the turn may have several calls
	// Tail is the end of the prompt that is part of the turn; see [Form.Tail].
	Tail string
	// Continues says that the prompt ends within the text of the turn. Tail is then empty.
	Continues bool
	// Content is the symbol of the turn's text. The zero Symbol is any text.
	Content grammar.Symbol
	// Schema returns the symbol of the JSON values of a schema.
	Schema func(*grammar.Builder, json.RawMessage) (grammar.Symbol, error)
	// Special reports whether text is a special token of the vocabulary.
	Special func(string) bool
}

// A maker builds the grammar of one request.
type maker struct {
	f *Form
	b *grammar.Builder
	s *rx.Space
	r GrammarRequest
}

// Grammar returns the language of the turns that a request allows. Reasoning comes first and is not
// constrained. The error wraps ErrGrammar or comes from r.Schema.
func (f *Form) Grammar(b *grammar.Builder, r GrammarRequest) (grammar.Symbol, error) {
	m := &maker{f: f, b: b, s: b.Space(), r: r}
	if r.Name != "" {
		m.r.Tools = nil
		for _, t := range r.Tools {
			if t.Name == r.Name {
				m.r.Tools = append(m.r.Tools, t)
			}
		}
	}
	if r.Choice == ChoiceRequired {
		switch {
		case len(m.r.Tools) == 0:
			return grammar.Symbol{}, fmt.Errorf("%w: no tool %q is among the %d of the request", ErrGrammar, r.Name, len(r.Tools))
		case !f.HasCalls():
			return grammar.Symbol{}, fmt.Errorf("%w: the model's chat template shows no form of calls", ErrGrammar)
		}
	}
	if r.Choice == ChoiceNone || !f.HasCalls() {
		m.r.Tools = nil
	}
	switch {
	case r.Continues:
		return m.rest()
	case f.Calls.Syntax == SyntaxHarmony:
		return m.harmony()
	}
	body, err := m.body()
	if err != nil {
		return grammar.Symbol{}, err
	}
	return m.thoughtAnd(body), nil
}

// seq returns a rule of one sequence, or its only symbol.
func (m *maker) seq(name string, symbols ...grammar.Symbol) grammar.Symbol {
	if len(symbols) == 1 {
		return symbols[0]
	}
	return m.choice(name, symbols)
}

// choice returns a rule of several sequences.
func (m *maker) choice(name string, alternatives ...[]grammar.Symbol) grammar.Symbol {
	rule := m.b.Rule(name)
	m.b.Define(rule, alternatives...)
	return rule
}

// text returns the symbols of a fixed text, with its special tokens.
func (m *maker) text(text string) []grammar.Symbol {
	marks := specialBytes(text, m.r.Special)
	var out []grammar.Symbol
	for i := 0; i < len(text); {
		if !marks[i] {
			j := i
			for j < len(text) && !marks[j] {
				j++
			}
			out = append(out, m.b.Lexeme(m.s.Literal(text[i:j])))
			i = j
			continue
		}
		n := min(maxSpecial, len(text)-i)
		for !m.r.Special(text[i : i+n]) {
			n--
		}
		out = append(out, m.b.Special(text[i:i+n]))
		i += n
	}
	return out
}

// gap returns the symbols of optional white space.
func (m *maker) gap(space string) []grammar.Symbol {
	if space == "" {
		return nil
	}
	return []grammar.Symbol{m.b.Lexeme(m.s.Or(rx.Empty, m.s.Literal(space)))}
}

// mark returns the symbols of a fixed text. The white space around it is optional.
func (m *maker) mark(text string) []grammar.Symbol {
	core := word(text)
	if core == "" {
		return m.gap(text)
	}
	at := strings.Index(text, core)
	out := append(m.gap(text[:at]), m.text(core)...)
	return append(out, m.gap(text[at+len(core):])...)
}

// without returns the expression of all texts that contain none of texts.
func (m *maker) without(texts ...string) rx.Expr {
	var found []rx.Expr
	for _, t := range texts {
		if t = word(t); t != "" {
			found = append(found, m.s.Concat(rx.Anything, m.s.Literal(t), rx.Anything))
		}
	}
	return m.s.Not(m.s.Or(found...))
}

// plainMark returns the words of a mark, or "" if the mark has a special token: no text can then
// contain the mark.
func (m *maker) plainMark(text string) string {
	text = word(text)
	for _, special := range specialBytes(text, m.r.Special) {
		if special {
			return ""
		}
	}
	return text
}

// thoughtAnd puts reasoning before the rest of the turn if the form has reasoning.
func (m *maker) thoughtAnd(body grammar.Symbol) grammar.Symbol {
	r := &m.f.Reasoning
	if r.End == "" {
		return body
	}
	thought := m.b.Lexeme(m.without(m.plainMark(r.End)))
	end := m.mark(r.End)
	rest := append(append([]grammar.Symbol{thought}, end...), body)
	switch {
	case m.f.opens(m.r.Tail):
		return m.choice("turn", rest)
	case m.r.Tail != "":
		return body
	case word(r.Begin) == "":
		return m.choice("turn", rest, []grammar.Symbol{body})
	}
	return m.choice("turn",
		append(m.mark(r.Begin), rest...),
		append(end, body),
		[]grammar.Symbol{body})
}

// trigger returns the text that begins calls.
func (m *maker) trigger() string {
	c := &m.f.Calls
	if word(c.Begin) != "" {
		if t := strings.TrimRight(word(c.Begin), "["); word(t) != "" {
			return word(t)
		}
		return word(c.Begin) + pieces(c.Call)[0].text
	}
	first := pieces(c.Call)[0].text
	if i := strings.IndexByte(first, '{'); i > 0 && word(first[:i]) != "" {
		return word(first[:i])
	}
	return word(first)
}

// bare reports whether only the first bytes of calls distinguish them from text.
func (m *maker) bare() bool { return newPlan(m.f, m.r.Special).bare }

// unmarked returns the expression of all texts without the marks of reasoning and content.
func (m *maker) unmarked() rx.Expr {
	r, c := &m.f.Reasoning, &m.f.Content
	return m.without(m.plainMark(r.Begin), m.plainMark(r.End), m.plainMark(c.Begin), m.plainMark(c.End))
}

// freeText returns the expression of the text of a turn that has no calls.
func (m *maker) freeText() rx.Expr {
	text := m.unmarked()
	if !m.f.HasCalls() || m.f.Calls.Syntax == SyntaxHarmony {
		return text
	}
	trigger := m.trigger()
	if m.bare() {
		if trigger == "[" { // followed by the name of a tool
			var names []rx.Expr
			for _, t := range m.r.Tools {
				names = append(names, m.s.Literal("["+t.Name+"("))
			}
			return m.s.And(text, m.s.Not(m.s.Concat(m.s.Or(names...), rx.Anything)))
		}
		return m.s.And(text, m.s.Not(m.s.Concat(m.s.Literal(trigger), rx.Anything)))
	}
	return m.s.And(text, m.without(m.plainMark(trigger)))
}

// rest returns the turn after the beginning of its text: more text, then calls if they can be
// distinguished from the text before them.
func (m *maker) rest() (grammar.Symbol, error) {
	content := m.r.Content
	calls := len(m.r.Tools) > 0 && content.IsZero() && m.f.Calls.Syntax != SyntaxHarmony && !m.bare()
	if content.IsZero() {
		text := m.unmarked()
		if calls {
			text = m.freeText()
		}
		content = m.b.Lexeme(text)
	}
	rest := []grammar.Symbol{content}
	switch {
	case m.f.Calls.Syntax == SyntaxHarmony:
		rest = append(rest, m.choice("end", nil, m.text(harmonyReturn)))
	case word(m.f.Content.Begin) != "":
		rest = append(rest, m.mark(m.f.Content.End)...)
	}
	end := m.f.End[:len(m.f.End)-len(strings.TrimLeft(m.f.End, spaces))]
	rest = append(rest, m.gap(end)...)
	if !calls {
		return m.seq("rest", rest...), nil
	}
	then, err := m.calls(false)
	if err != nil {
		return grammar.Symbol{}, err
	}
	return m.choice("rest", rest, append(append(append([]grammar.Symbol{}, rest...), then...), m.gap(end)...)), nil
}

// body returns the symbol of the turn after the reasoning.
func (m *maker) body() (grammar.Symbol, error) {
	content := m.r.Content
	free := content.IsZero()
	if free {
		content = m.b.Lexeme(m.freeText())
	}
	marked := []grammar.Symbol{content}
	if word(m.f.Content.Begin) != "" {
		begin := m.f.Content.Begin
		if m.begun() {
			begin = strings.TrimPrefix(begin, m.r.Tail)
		}
		marked = append(append(m.mark(begin), content), m.mark(m.f.Content.End)...)
	} else {
		marked = append(m.gap(m.f.Content.Begin), marked...)
	}
	end := m.f.End[:len(m.f.End)-len(strings.TrimLeft(m.f.End, spaces))]
	marked = append(marked, m.gap(end)...)
	if len(m.r.Tools) == 0 {
		return m.seq("content", marked...), nil
	}
	calls, err := m.calls(m.begun())
	if err != nil {
		return grammar.Symbol{}, err
	}
	if word(m.f.Content.Begin) == "" {
		calls = append(m.gap(m.f.Content.Begin), calls...)
	}
	calls = append(calls, m.gap(end)...)
	if m.r.Choice == ChoiceRequired {
		return m.seq("calls", calls...), nil
	}
	alternatives := [][]grammar.Symbol{marked, calls}
	if free && !m.bare() {
		then := calls
		if m.begun() {
			if then, err = m.calls(false); err != nil {
				return grammar.Symbol{}, err
			}
		}
		both := append(append([]grammar.Symbol{}, marked...), then...)
		alternatives = append(alternatives, both)
		if m.f.Calls.After {
			alternatives = append(alternatives, append(append([]grammar.Symbol{}, calls...), marked...))
		}
	}
	return m.choice("answer", alternatives...), nil
}
