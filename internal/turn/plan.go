package turn

import (
	"slices"
	"strings"
)

// A plan is a Form prepared for parsing.
type plan struct {
	form *Form

	thought     [2]literal // begin, end
	content     [2]literal
	end         literal
	optional    literal
	section     [2]literal
	separator   literal
	call        literal // beginning of a call, up to its object or its name
	callEnd     literal // text after the object or the arguments
	bare        bool    // calls have no mark of their own: they begin a turn with { or [
	object      *envelope
	afterName   literal   // text between name and arguments
	header      []literal // text between name and id, if the header has both
	key         literal
	keyEnd      literal
	keyEndOther literal // keyEnd before a value that is not a string
	hasOther    bool
	valueEnd    literal
	quote       *literal
	closing     byte // the bracket that ends a list of arguments

	leads []string // white space that may come before marks
}

func newPlan(f *Form, special func(string) bool) *plan {
	p := &plan{form: f}
	lit := func(s string) literal { return newLiteral(s, special, "") }
	p.thought = [2]literal{lit(f.Reasoning.Begin), lit(f.Reasoning.End)}
	p.content = [2]literal{lit(f.Content.Begin), lit(f.Content.End)}
	p.end = lit(f.End)
	c := &f.Calls
	p.optional = lit(c.Optional)
	p.section = [2]literal{newLiteral(c.Begin, special, "["), newLiteral(c.End, special, "]")}
	p.separator = lit(c.Separator)
	switch c.Syntax {
	case SyntaxJSON, SyntaxString:
		if e, ok := findEnvelope(c.Call); ok {
			p.object = &e
			p.call, p.callEnd = lit(e.before), lit(e.after)
			break
		}
		p.named(c.Call, special)
	case SyntaxTagged:
		p.named(c.Call, special)
		before, after := around(c.Argument, holdKey)
		middle, last := around(after, holdValue)
		p.key, p.keyEnd, p.valueEnd = lit(before), lit(middle), lit(last)
		if c.OtherArgument != "" {
			_, after := around(c.OtherArgument, holdKey)
			middle, _ := around(after, holdValue)
			p.keyEndOther, p.hasOther = lit(middle), true
		}
	case SyntaxPython, SyntaxBraces:
		// The brackets around the arguments belong to the value.
		before, after := around(c.Call, holdArguments)
		p.named(before+holdArguments+after, special)
		if c.Quote != "" {
			q := lit(c.Quote)
			p.quote = &q
		}
	case SyntaxHarmony:
		h := lit(harmonyMessage)
		p.call = h
	}
	p.bare = f.HasCalls() && c.Syntax != SyntaxHarmony && p.section[0].empty() && p.call.empty() ||
		strings.Trim(c.Begin, spaces) == "["
	for _, l := range []*literal{&p.thought[1], &p.content[1], &p.end, &p.section[0], &p.call} {
		p.leads = append(p.leads, l.lead)
	}
	return p
}

// named sets the fields of a call whose name and arguments are between marks.
func (p *plan) named(pattern string, special func(string) bool) {
	before, after := around(pattern, holdName)
	middle, last := around(after, holdArguments)
	parts := pieces(middle)
	var texts []string
	for _, x := range parts {
		if x.hold == "" {
			texts = append(texts, x.text)
		}
	}
	p.call, p.callEnd = newLiteral(before, special, ""), newLiteral(last, special, "")
	if n := len(texts); n > 0 {
		p.afterName = newLiteral(texts[n-1], special, "")
		for _, t := range texts[:n-1] {
			p.header = append(p.header, newLiteral(t, special, ""))
		}
	}
	if c := p.form.Calls.Syntax; c == SyntaxPython || c == SyntaxBraces {
		p.closing = ')'
		if c == SyntaxBraces {
			p.closing = '}'
		}
		rest := strings.TrimPrefix(strings.TrimLeft(last, spaces), string(p.closing))
		p.callEnd = newLiteral(rest, special, "")
	}
}

// Specials returns the marks of f that are special tokens according to special. A Parser of f needs
// their text.
func (f *Form) Specials(special func(string) bool) []string {
	var out []string
	add := func(text string) {
		marks := specialBytes(text, special)
		for i := 0; i < len(text); i++ {
			if !marks[i] {
				continue
			}
			n := min(maxSpecial, len(text)-i)
			for !special(text[i : i+n]) {
				n--
			}
			if t := text[i : i+n]; !slices.Contains(out, t) {
				out = append(out, t)
			}
			i += n - 1
		}
	}
	c := &f.Calls
	for _, text := range append([]string{
		f.Reasoning.Begin, f.Reasoning.End, f.Content.Begin, f.Content.End,
		c.Begin, c.End, c.Separator, c.Call, c.Optional, c.Argument, c.OtherArgument, c.Quote,
	}, f.harmonyMarks()...) {
		add(text)
	}
	return out
}
