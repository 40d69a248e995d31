package turn

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/realizar/realizar/chat"
)

var (
	yesJSON = json.RawMessage("true")
	noJSON  = json.RawMessage("false")
	// thinking enables reasoning, by the variable names of all templates.
	thinking = map[string]json.RawMessage{"enable_thinking": yesJSON, "thinking": yesJSON}
)

// findReasoning finds the marks around the reasoning.
func (p *prober) findReasoning(f *Form) {
	call := callOf(probeName1, probeID1, `{"`+probeKey1+`":"`+probeValue1+`"}`)
	for _, m := range []struct {
		message chat.Message
		next    string
	}{
		{assistant(probeContent, probeThought), probeContent},
		{assistant("", probeThought, call), probeName1},
	} {
		text, ok := p.render(false, thinking, m.message)
		before, after, found := strings.Cut(text, probeThought)
		if !ok || !found {
			continue
		}
		between, _, found := strings.Cut(after, m.next)
		if !found || strings.Contains(before, m.next) {
			continue
		}
		f.Reasoning.Begin = before
		if i := strings.LastIndex(before, f.Start); i >= 0 {
			f.Reasoning.Begin = before[i+len(f.Start):]
		}
		f.Reasoning.End = endOfThought(between, f, m.next == probeContent)
		break
	}
	r := &f.Reasoning
	if r.End == "" {
		return
	}
	// Empty reasoning before the text is not a mark of the text.
	for _, mark := range []string{word(r.Begin), word(r.End)} {
		if mark != "" && strings.Contains(f.Content.Begin, mark) {
			f.dropContentMarks()
		}
	}
	r.TrimLeft, r.TrimRight = p.trims(probeThought, func(s string) chat.Message {
		if m := assistant(probeContent, s); f.Content.Begin == "" {
			return m
		}
		return assistant("", s, call)
	})
}

// dropContentMarks removes marks of the text that belong to other parts of the turn.
func (f *Form) dropContentMarks() {
	if f.Content.End != "" {
		f.End = f.Content.End
	}
	f.Content.Begin, f.Content.End = "", ""
}

var firstTag = regexp.MustCompile(`^\s*(<[^<>]*>|\[[^\[\]]*\])\s*`)

// endOfThought returns the mark that ends the reasoning, given the text between the reasoning and
// the part that follows.
func endOfThought(between string, f *Form, text bool) string {
	if text {
		if rest := strings.TrimSuffix(between, f.Content.Begin); word(rest) != "" {
			return rest
		}
		return between
	}
	return firstTag.FindString(between)
}

// findVariable finds the variable that turns reasoning on and off, and the ends of prompts.
func (p *prober) findVariable(f *Form) {
	tail := func(vars map[string]json.RawMessage) (string, string) {
		prompt, _ := p.render(true, vars)
		return f.Tail(prompt), prompt
	}
	r := &f.Reasoning
	plain, _ := tail(nil)
	r.Default = plain
	for _, name := range []string{"enable_thinking", "thinking", "reasoning"} {
		on, prompt1 := tail(map[string]json.RawMessage{name: yesJSON})
		off, prompt2 := tail(map[string]json.RawMessage{name: noJSON})
		if p.differ(name) || prompt1 != prompt2 {
			r.Variable, r.On, r.Off = name, on, off
			break
		}
	}
	if r.Begin == "" && r.End != "" && r.Default != "" {
		r.Begin = r.Default
	}
	r.Open = f.opens(r.Default)
}

// differ reports whether a variable changes anything in a prompt.
func (p *prober) differ(name string) bool {
	text := func(v json.RawMessage) string {
		t, _ := p.whole(map[string]json.RawMessage{name: v})
		return t
	}
	return text(yesJSON) != text(noJSON)
}

// opens reports whether a turn that begins with tail begins inside the reasoning.
func (f *Form) opens(tail string) bool {
	return f.NewParser(ParserOptions{Tail: tail}).InReasoning()
}

// guessReasoning sets the reasoning marks that a template mentions but does not render.
func guessReasoning(f *Form, source string) {
	for _, marks := range [][2]string{
		{"<think>\n", "\n</think>\n\n"},
		{"[THINK]", "[/THINK]"},
	} {
		if strings.Contains(source, word(marks[1])) {
			if strings.Contains(f.Content.Begin, word(marks[1])) { // empty reasoning
				marks[0], marks[1] = word(marks[0]), word(marks[1])
				f.dropContentMarks()
			}
			f.Reasoning.Begin, f.Reasoning.End = marks[0], marks[1]
			f.Reasoning.Open = f.opens(f.Reasoning.Default)
			return
		}
	}
}
