package turn

import (
	"fmt"

	"github.com/realizar/realizar/internal/grammar"
)

// harmony returns the symbol of a turn of messages with headers: reasoning, optionally a text for
// the user, and then the answer or a call.
func (m *maker) harmony() (grammar.Symbol, error) {
	marks := m.f.harmonyMarks()
	for i, k := range marks {
		marks[i] = m.plainMark(k)
	}
	body := m.b.Lexeme(m.without(marks...))
	join := func(parts ...[]grammar.Symbol) []grammar.Symbol {
		var all []grammar.Symbol
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	next := m.text(harmonyEnd + harmonyStart + "assistant")
	thought := m.seq("thought", join(m.text(harmonyChannel+"analysis"+harmonyMessage), []grammar.Symbol{body}, next)...)
	before := m.b.Rule("thoughts")
	m.b.Define(before, nil, []grammar.Symbol{before, thought})
	maybe := func(text string) grammar.Symbol { return m.choice("end", nil, m.text(text)) }

	var alternatives [][]grammar.Symbol
	for _, t := range m.r.Tools {
		arguments, err := m.arguments(t)
		if err != nil {
			return grammar.Symbol{}, fmt.Errorf("tool %q: %w", t.Name, err)
		}
		to := "to=" + harmonyFunctions + t.Name
		end := []grammar.Symbol{arguments, maybe(harmonyCall)}
		alternatives = append(alternatives,
			join(m.text(harmonyChannel+"commentary "+to+" "+harmonyConstrain+"json"+harmonyMessage), end),
			join(m.text(" "+to+harmonyChannel+"commentary "), []grammar.Symbol{maybe(harmonyConstrain)}, m.text("json"+harmonyMessage), end))
	}
	if m.r.Choice != ChoiceRequired {
		content := m.r.Content
		if content.IsZero() {
			content = body
		}
		alternatives = append(alternatives, join(m.text(harmonyChannel+"final"+harmonyMessage), []grammar.Symbol{content, maybe(harmonyReturn)}))
		if len(m.r.Tools) > 0 {
			spoken := m.seq("spoken", join(m.text(harmonyChannel+"commentary"+harmonyMessage), []grammar.Symbol{body}, next)...)
			both := m.b.Rule("before")
			m.b.Define(both, nil, []grammar.Symbol{both, thought}, []grammar.Symbol{both, spoken})
			before = both
		}
	}
	return m.seq("turn", before, m.choice("message", alternatives...)), nil
}
