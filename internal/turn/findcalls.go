package turn

import (
	"encoding/json"
	"strings"
)

// findCalls finds how calls are written, from messages with one call and two.
func (p *prober) findCalls(f *Form) {
	one := `{"` + probeKey1 + `":"` + probeValue1 + `"}`
	two := `{"` + probeKey2 + `":"` + probeValue2 + `"}`
	first := callOf(probeName1, probeID1, one)
	text, ok := p.render(false, thinking, assistant("", "", first))
	if !ok || !strings.Contains(text, probeName1) || !strings.Contains(text, probeValue1) {
		return
	}
	a, ok := newShape(f, text, probeName1, probeKey1, probeValue1)
	if !ok {
		return
	}
	c := &f.Calls
	c.Syntax, c.Quote = a.syntax, a.quote
	if a.syntax == SyntaxTagged {
		p.findTagged(f)
		return
	}
	c.Call = a.begin + holdName + a.middle + holdArguments + a.end
	pair, ok := p.render(false, thinking, assistant("", "", first, callOf(probeName2, probeID2, two)))
	if b, found := secondShape(f, pair); ok && found {
		before, between, after := a.begin, b.between, b.end
		begin := strings.TrimLeft(commonSuffix(before, between), spaces)
		end := commonPrefix(between, after)
		middle := indexed(a.middle, b.middle)
		c.Several = true
		setAround(c, before, begin, between, end, after)
		c.Call = begin + holdName + middle + holdArguments + end
		if strings.Contains(middle, ":"+holdIndex) && strings.HasSuffix(begin, ".") {
			c.IDPrefix = begin[strings.LastIndexAny(begin, ">]")+1:]
		}
	}
	p.findLead(f)
}

// setAround sets the texts around and between calls, given the texts before the first of two calls,
// between them and after the second.
func setAround(c *CallForm, before, begin, between, end, after string) {
	plain := func(pattern, index string) string { return strings.ReplaceAll(pattern, holdIndex, index) }
	c.Begin = strings.TrimSuffix(before, plain(begin, "0"))
	c.End = strings.TrimPrefix(after, end)
	c.Separator = strings.TrimSuffix(strings.TrimPrefix(between, end), plain(begin, "1"))
}

// indexed puts the index placeholder where one text has a 0 and the other a 1.
func indexed(a, b string) string {
	if len(a) != len(b) {
		return a
	}
	for i := range len(a) {
		if a[i] == '0' && b[i] == '1' && a[:i] == b[:i] && a[i+1:] == b[i+1:] {
			return a[:i] + holdIndex + a[i+1:]
		}
	}
	return a
}

// A shape is the parsed text of a turn with one call.
type shape struct {
	syntax             Syntax
	begin, middle, end string // before the name, between name and arguments, after them
	between            string // the text between two calls
	quote              string
}

// newShape parses the text of a turn with one call.
func newShape(f *Form, text, name, key, value string) (shape, bool) {
	var s shape
	at := strings.Index(text, name)
	s.begin = turnPrefix(f, strings.ReplaceAll(text[:at], probeID1, holdID))
	from, to, syntax, quote := argumentsOf(text, at+len(name), key, value)
	if from < 0 {
		return s, false
	}
	s.syntax, s.quote = syntax, quote
	s.middle = strings.ReplaceAll(text[at+len(name):from], probeID1, holdID)
	s.end = strings.ReplaceAll(turnSuffix(f, text[to:]), probeID1, holdID)
	return s, true
}

// secondShape parses the second call of a turn with two.
func secondShape(f *Form, text string) (shape, bool) {
	first := strings.Index(text, probeName1)
	second := strings.Index(text, probeName2)
	if first < 0 || second < first {
		return shape{}, false
	}
	_, end, _, _ := argumentsOf(text, first+len(probeName1), probeKey1, probeValue1)
	s, ok := newShape(f, text, probeName2, probeKey2, probeValue2)
	if !ok || end < 0 || end > second {
		return s, false
	}
	ids := strings.NewReplacer(probeID1, holdID, probeID2, holdID)
	s.between = ids.Replace(text[end:second])
	s.middle, s.end = ids.Replace(s.middle), ids.Replace(s.end)
	return s, true
}

// turnPrefix returns the text of a turn before its first call, without empty reasoning and the mark
// of the text.
func turnPrefix(f *Form, text string) string {
	if i := strings.LastIndex(text, f.Start); i >= 0 {
		text = text[i+len(f.Start):]
	} else if i := strings.LastIndex(text, strings.TrimRight(f.Start, spaces)); i >= 0 {
		text = strings.TrimLeft(text[i+len(strings.TrimRight(f.Start, spaces)):], spaces)
	}
	begin, end := word(f.Reasoning.Begin), word(f.Reasoning.End)
	if end != "" {
		if i := strings.Index(text, end); i >= 0 && word(strings.TrimPrefix(word(text[:i]), begin)) == "" {
			text = text[i+len(end):]
		}
	}
	if mark := word(f.Content.Begin); mark != "" {
		text = strings.TrimPrefix(text, mark)
	}
	return text
}

// turnSuffix returns the text after a call, without the end of the turn.
func turnSuffix(f *Form, text string) string {
	if tag := firstTag.FindString(f.Start); tag != "" { // a template that always asks for an answer
		text, _, _ = strings.Cut(text, strings.TrimRight(tag, spaces))
	}
	if end := word(f.End); end != "" {
		if i := strings.Index(text, end); i >= 0 {
			text = text[:i]
			lead := f.End[:strings.Index(f.End, end)]
			return strings.TrimSuffix(text, lead)
		}
	}
	return strings.TrimSuffix(text, f.End)
}

// argumentsOf finds the arguments with one key and value after a name: their position and notation.
// from is -1 if they are not found.
func argumentsOf(text string, at int, key, value string) (from, to int, syntax Syntax, quote string) {
	k := strings.Index(text[at:], key)
	if k < 0 {
		return -1, -1, SyntaxNone, ""
	}
	k += at
	v := strings.Index(text[k:], value)
	if v < 0 {
		return -1, -1, SyntaxNone, ""
	}
	v += k
	between := text[k+len(key) : v]
	behind := text[v+len(value):]
	open := strings.LastIndexByte(text[at:k], '{')
	switch {
	case strings.HasSuffix(text[:k], `\"`) && open >= 0:
		from = at + open
		if from > 0 && text[from-1] == '"' {
			if i := strings.Index(behind, `}"`); i >= 0 {
				return from, v + len(value) + i + 1, SyntaxString, ""
			}
		}
	case strings.HasSuffix(text[:k], `"`) && strings.HasPrefix(between, `"`) && word(between[1:]) == `: "` || strings.HasPrefix(between, `":`):
		if open < 0 {
			break
		}
		from = at + open
		d := json.NewDecoder(strings.NewReader(text[from:]))
		var object map[string]string
		if d.Decode(&object) == nil && object[key] == value {
			return from, from + int(d.InputOffset()), SyntaxJSON, ""
		}
	case between == `="` || between == `='`:
		if text[k-1] == '(' && len(behind) > 0 && behind[0] == between[1] {
			return k, v + len(value) + 1, SyntaxPython, ""
		}
	case strings.HasPrefix(between, ":") && text[k-1] == '{' && strings.HasPrefix(behind, between[1:]):
		return k, v + len(value) + len(between) - 1, SyntaxBraces, between[1:]
	case strings.ContainsAny(between, ">]") && !strings.ContainsAny(between, "{"):
		return k, v + len(value), SyntaxTagged, ""
	}
	return -1, -1, SyntaxNone, ""
}

// findLead finds the white space between text and the calls after it.
func (p *prober) findLead(f *Form) {
	c := &f.Calls
	call := callOf(probeName1, probeID1, `{"`+probeKey1+`":"`+probeValue1+`"}`)
	text, ok := p.render(false, thinking, assistant(probeContent, "", call))
	_, after, found := strings.Cut(text, probeContent)
	at := &c.Call
	if word(c.Begin) != "" {
		at = &c.Begin
	}
	if ok && found && strings.Contains(after, probeName1) {
		lead := after[:len(after)-len(strings.TrimLeft(after, spaces))]
		if strings.HasPrefix(after[len(lead):], strings.TrimLeft(pieces(*at)[0].text, spaces)) {
			*at = lead + strings.TrimLeft(*at, spaces)
		}
	}
	if word(c.Begin) == "" {
		c.Begin = ""
	}
	if word(c.End) == "" && c.Begin == "" {
		c.End = ""
	}
}
