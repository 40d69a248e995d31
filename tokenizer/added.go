package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// addedToken is a token that is matched in the text before the model encodes it.
type addedToken struct {
	id         int32
	pattern    string // the spelling to match
	special    bool   // matches only where special tokens are allowed
	singleWord bool   // matches only if no word character is next to it
	lstrip     bool   // takes the white space before it
	rstrip     bool   // takes the white space after it
}

// addedTokens finds added tokens in a text. At each position it takes the longest token, from left
// to right; with an order it follows that order.
type addedTokens struct {
	special, ordinary []addedToken
	findSpecial       *automaton // nil if there are none
	findOrdinary      *automaton
	order             *longestFirst // nil for leftmost first
}

func newAddedTokens(tokens []addedToken) *addedTokens {
	a := &addedTokens{}
	for _, t := range tokens {
		switch {
		case t.pattern == "": // the normalizer removed the whole spelling
		case t.special:
			a.special = append(a.special, t)
		default:
			a.ordinary = append(a.ordinary, t)
		}
	}
	a.findSpecial, a.findOrdinary = automatonFor(a.special), automatonFor(a.ordinary)
	return a
}

func automatonFor(tokens []addedToken) *automaton {
	if len(tokens) == 0 {
		return nil
	}
	patterns := make([]string, len(tokens))
	for i, t := range tokens {
		patterns[i] = t.pattern
	}
	return newAutomaton(patterns)
}

func (a *addedTokens) empty() bool      { return a.findSpecial == nil && a.findOrdinary == nil }
func (a *addedTokens) hasSpecial() bool { return a.findSpecial != nil }

// candidate is the longest added token that may begin at a position.
type candidate struct {
	start int
	token *addedToken
}

// candidates returns the possible matches in text, by descending start.
func (a *addedTokens) candidates(w *work, text string, allowed *regions) []candidate {
	var special, ordinary []candidate
	if a.findSpecial != nil {
		add := func(m match) {
			special = append(special, candidate{m.start, &a.special[m.pattern]})
			w.found(len(special))
		}
		if allowed == nil {
			a.findSpecial.scan(w, text, region{0, len(text)}, add)
		} else {
			for _, r := range slices.Backward(allowed.runs) {
				a.findSpecial.scan(w, text, r, add)
			}
		}
	}
	if a.findOrdinary != nil {
		a.findOrdinary.scan(w, text, region{0, len(text)}, func(m match) {
			ordinary = append(ordinary, candidate{m.start, &a.ordinary[m.pattern]})
			w.found(len(ordinary))
		})
	}
	if len(ordinary) == 0 {
		return special
	}
	if len(special) == 0 {
		return ordinary
	}
	merged := make([]candidate, 0, len(special)+len(ordinary))
	for len(special) > 0 && len(ordinary) > 0 {
		s, o := special[0], ordinary[0]
		if s.start >= o.start {
			special = special[1:]
		}
		if o.start >= s.start {
			ordinary = ordinary[1:]
		}
		switch {
		case s.start > o.start, s.start == o.start && len(s.token.pattern) >= len(o.token.pattern):
			merged = append(merged, s)
		default:
			merged = append(merged, o)
		}
	}
	return append(append(merged, special...), ordinary...)
}

// split calls part for every part of text in order: an added token with its id, or the text between
// two tokens with id -1. Special tokens match only within allowed.
//
// A match that fails because of singleWord still consumes its text. The white space that rstrip
// takes may be matched again, but only by a token with lstrip. Both are as in Hugging Face
// tokenizers.
func (a *addedTokens) split(w *work, text string, allowed *regions, part func(start, end int, id int32)) {
	if a.order != nil {
		a.order.split(a, w, text, allowed, part)
		return
	}
	found := a.candidates(w, text, allowed)
	done := 0        // text before this is passed to part
	read := 0        // matches begin here at the earliest
	var blank region // the white space that rstrip took last, kept so that it is measured once
	for _, c := range slices.Backward(found) {
		start, end := c.start, c.start+len(c.token.pattern)
		if start < read {
			continue
		}
		read = end
		if c.token.singleWord && (endsInWord(text[:start]) || beginsInWord(text[end:])) {
			continue
		}
		if c.token.lstrip {
			start = max(start, done)
			start = done + len(strings.TrimRightFunc(text[done:start], isSpace))
		}
		if c.token.rstrip {
			if end < blank.start || end > blank.end {
				blank = region{end, len(text) - len(strings.TrimLeftFunc(text[end:], isSpace))}
			}
			end = blank.end
		}
		if start >= end {
			continue // white space that an earlier rstrip took
		}
		if done < start {
			part(done, start, -1)
		}
		part(start, end, c.token.id)
		done = end
	}
	if done < len(text) {
		part(done, len(text), -1)
	}
}

func endsInWord(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return text != "" && isWord(r)
}

func beginsInWord(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return text != "" && isWord(r)
}
