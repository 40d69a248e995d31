package turn

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/realizar/realizar/chat"
)

// ErrForm reports a template that does not show how turns are written.
var ErrForm = errors.New("turn: the chat template does not show how a turn is written")

// Find returns the form of the turns of a template's model. special has the texts of special tokens
// by the names that templates use, as in a [chat.Request]. The form of a template without tool
// calls has none. If plain messages cannot be rendered, the error wraps [ErrForm].
func Find(t *chat.Template, special map[string]string) (Form, error) {
	p := &prober{template: t, special: special}
	var f Form
	if !p.prepare() {
		return f, fmt.Errorf("%w: it renders neither with tools nor without", ErrForm)
	}
	known := recognise(t.Source())
	p.findText(&f)
	p.findReasoning(&f)
	p.findVariable(&f)
	if known == nil || known.form.Calls.Syntax == SyntaxNone {
		p.findCalls(&f)
	}
	if known != nil {
		known.apply(&f)
	}
	if f.Reasoning.End == "" && f.Calls.Syntax != SyntaxHarmony {
		guessReasoning(&f, t.Source())
	}
	return f, nil
}

// findText finds the start and end of turns, and the marks around their text.
func (p *prober) findText(f *Form) {
	text, ok := p.render(false, nil, assistant(probeContent, ""))
	before, after, found := strings.Cut(text, probeContent)
	prompt, _ := p.render(true, nil)
	if !ok || !found {
		f.Start = cutThought(prompt)
		return
	}
	start := commonPrefix(prompt, before)
	if strings.HasSuffix(prompt, before) {
		start = before
	}
	if start == "" {
		start = before
	}
	start = cutThought(start)
	f.Content.Begin = before[len(start):]
	if word(f.Content.Begin) != "" {
		f.Content.End = firstTag.FindString(after)
		after = after[len(f.Content.End):]
	}
	const maxEnd = 64
	if f.End = firstTag.FindString(after); f.End == "" && len(after) < maxEnd {
		f.End = after
	}
	if plain, ok := p.render(false, nil); ok && strings.HasPrefix(start, plain) && len(plain) < len(start) {
		start = start[len(plain):]
	} else if first := firstTag.FindString(start); len(first) < len(start) {
		start = start[len(first):] // the end of the question
	}
	f.Start = start
	f.Content.TrimLeft, f.Content.TrimRight = p.trims(probeContent, func(s string) chat.Message { return assistant(s, "") })
}

var thoughtTag = regexp.MustCompile(`(?i)<[^<>]*(think|thought)[^<>]*>\s*$|\[[^\[\]]*think[^\[\]]*\]\s*$`)

// cutThought removes reasoning tags from the end of the text that begins a turn.
func cutThought(s string) string {
	for {
		at := thoughtTag.FindStringIndex(s)
		if at == nil {
			return s
		}
		s = s[:at[0]]
	}
}

// trims returns the white space that the template strips from the ends of a text.
func (p *prober) trims(word string, message func(string) chat.Message) (left, right Trim) {
	bare, ok := p.render(false, thinking, message(word))
	padded, ok2 := p.render(false, thinking, message("\n \n"+word+"\n \n"))
	if !ok || !ok2 {
		return TrimNone, TrimNone
	}
	b1, a1, _ := strings.Cut(bare, word)
	b2, a2, _ := strings.Cut(padded, word)
	kind := func(rest string) Trim {
		switch {
		case rest == "":
			return TrimSpace
		case len(rest) < 3:
			return TrimNewlines
		}
		return TrimNone
	}
	left, right = TrimNone, TrimNone
	if strings.HasPrefix(b2, b1) {
		left = kind(b2[len(b1):])
	}
	if strings.HasSuffix(a2, a1) {
		right = kind(a2[:len(a2)-len(a1)])
	}
	return left, right
}

// word returns the part of a mark without the white space around it.
func word(mark string) string { return strings.Trim(mark, spaces) }
