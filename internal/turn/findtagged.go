package turn

import (
	"strings"
)

// findTagged finds the form of calls whose arguments are between tags: the calls from two without
// arguments, then the arguments from a call with two.
func (p *prober) findTagged(f *Form) {
	c := &f.Calls
	none, ok := p.render(false, thinking, assistant("", "", callOf(probeName1, probeID1, "{}")))
	both, ok2 := p.render(false, thinking, assistant("", "", callOf(probeName1, probeID1,
		`{"`+probeKey1+`":"`+probeValue1+`","`+probeKey2+`":"`+probeValue2+`"}`)))
	if !ok || !ok2 {
		*c = CallForm{}
		return
	}
	before, rest, _ := strings.Cut(none, probeName1)
	begin, after := turnPrefix(f, before), turnSuffix(f, rest)
	end := after // after the name, at the end of the call
	if pair, ok := p.render(false, thinking, assistant("", "",
		callOf(probeName1, probeID1, "{}"), callOf(probeName2, probeID2, "{}"))); ok && strings.Contains(pair, probeName2) {
		_, rest, _ := strings.Cut(pair, probeName1)
		between, rest, _ := strings.Cut(rest, probeName2)
		whole := begin
		begin = strings.TrimLeft(commonSuffix(begin, between), spaces)
		end = commonPrefix(between, turnSuffix(f, rest))
		c.Several = true
		setAround(c, whole, begin, between, end, turnSuffix(f, rest))
	}
	toKey, rest, ok := cutAll(both, probeName1, probeKey1)
	if !ok {
		*c = CallForm{}
		return
	}
	toValue, rest, _ := strings.Cut(rest, probeValue1)
	toNext, rest, _ := strings.Cut(rest, probeKey2)
	_, rest, _ = strings.Cut(rest, probeValue2)
	last := turnSuffix(f, rest)
	nameEnd := commonPrefix(end, toKey)
	callEnd := strings.TrimPrefix(end, nameEnd)
	key := strings.TrimPrefix(toKey, nameEnd)
	valueEnd := strings.TrimSuffix(toNext, key)
	if !strings.HasPrefix(last, valueEnd+callEnd) {
		valueEnd, _, _ = strings.Cut(last, callEnd)
		c.ArgumentSeparator = strings.TrimSuffix(strings.TrimPrefix(toNext, valueEnd), key)
	}
	c.Argument = key + holdKey + toValue + holdValue + valueEnd
	c.Call = begin + holdName + nameEnd + holdArguments + callEnd
	p.findValues(f, key)
	p.findLead(f)
}

// cutAll returns the text between two words and the text after the second.
func cutAll(s, first, second string) (between, after string, ok bool) {
	_, s, ok = strings.Cut(s, first)
	if !ok {
		return "", "", false
	}
	return strings.Cut(s, second)
}

// findValues finds how a tagged form writes values that are not strings.
func (p *prober) findValues(f *Form, key string) {
	c := &f.Calls
	value := func(v string) string {
		text, _ := p.render(false, thinking, assistant("", "", callOf(probeName1, probeID1, `{"`+probeKey1+`":`+v+`}`)))
		_, rest, _ := strings.Cut(text, probeKey1)
		return rest
	}
	number := value("7345")
	middle, rest, ok := strings.Cut(number, "7345")
	if !ok {
		return
	}
	_, usual := around(c.Argument, holdKey)
	usual, end := around(usual, holdValue)
	if middle != usual && strings.HasPrefix(rest, end) {
		c.OtherArgument = key + holdKey + middle + holdValue + end
	}
	c.Values, c.Lists = SyntaxJSON, SyntaxJSON
	if strings.HasPrefix(value("true"), middle+"True") {
		c.Values = SyntaxPython
	}
	if strings.HasPrefix(value(`[true]`), middle+"[True") {
		c.Lists = SyntaxPython
	}
}
