package lark

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"unicode"

	"github.com/realizar/realizar/internal/rx"
	"github.com/realizar/realizar/internal/rx/pattern"
)

// A term is a terminal.
type term struct {
	body *expr
	open bool // in progress: reaching it again means recursion
	done bool
	expr rx.Expr
	size int
}

// term returns the set of texts of an expression in a terminal, and its size. deep is the depth of
// references between terminals, which is bounded.
func (c *compiler) term(n *expr, deep int) (rx.Expr, int, error) {
	if deep > 4*maxDepth {
		return 0, 0, c.errorf(n.at, "terminals are nested too deep")
	}
	switch n.kind {
	case kindString:
		if n.flags == "" {
			return c.s.Literal(n.text), 1 + len(n.text), nil
		}
		return c.pattern(n, regexp.QuoteMeta(n.text))
	case kindRange:
		return c.s.Runes(rx.RuneRange{Lo: n.lo, Hi: n.hi}), 1, nil
	case kindRegex:
		return c.pattern(n, n.text)
	case kindName:
		return c.named(n, deep)
	case kindSubs:
		return c.substring(n)
	case kindSpecial, kindTokens:
		return 0, 0, c.errorf(n.at, "a token cannot stand in a terminal; use it in a rule")
	case kindJSON:
		return 0, 0, c.errorf(n.at, "%%json cannot stand in a terminal; use it in a rule")
	}
	parts := make([]rx.Expr, len(n.subs))
	size := 1
	for i, sub := range n.subs {
		e, more, err := c.term(sub, deep+1)
		if err != nil {
			return 0, 0, err
		}
		parts[i] = e
		size = min(size+more, maxText)
	}
	switch n.kind {
	case kindCat:
		return c.s.Concat(parts...), size, nil
	case kindAlt:
		return c.s.Or(parts...), size, nil
	case kindAnd:
		return c.s.And(parts...), size, nil
	case kindNot:
		// The complement stays within valid UTF-8.
		return c.s.And(c.s.Repeat(c.s.Runes(everything), 0, -1), c.s.Not(parts[0])), size, nil
	}
	return c.s.Repeat(parts[0], n.low, n.high), size, nil
}

// pattern returns the set of a regular expression. Error positions refer to the grammar's text.
func (c *compiler) pattern(n *expr, text string) (rx.Expr, int, error) {
	e, err := pattern.Parse(c.s, text, pattern.Options{Dialect: pattern.Common, Flags: n.flags})
	var bad *pattern.Error
	if errors.As(err, &bad) {
		return 0, 0, c.errorf(n.at+1+bad.Offset, "%s", bad.Problem)
	}
	return e, 1 + len(text), err
}

func (c *compiler) named(n *expr, deep int) (rx.Expr, int, error) {
	if !isTerminal(n.text) {
		return 0, 0, c.errorf(n.at, "the rule %s cannot stand in a terminal; make it one with an upper-case name", n.text)
	}
	t, ok := c.terms[n.text]
	switch {
	case !ok && common[n.text] != "":
		return 0, 0, c.errorf(n.at, "the terminal %s is not defined; add a line %%import common.%s", n.text, n.text)
	case !ok:
		return 0, 0, c.errorf(n.at, "the terminal %s is not defined", n.text)
	case t.open:
		return 0, 0, c.errorf(n.at, "the terminal %s refers to itself; make it a rule with a lower-case name", n.text)
	case !t.done:
		t.open = true
		var err error
		if t.expr, t.size, err = c.term(t.body, deep+1); err != nil {
			return 0, 0, err
		}
		t.open, t.done = false, true
	}
	return t.expr, t.size, nil
}

// substring returns the set of %regex: runs of consecutive chunks, words or characters.
func (c *compiler) substring(n *expr) (rx.Expr, int, error) {
	d := json.NewDecoder(strings.NewReader(n.text))
	d.DisallowUnknownFields()
	var o struct {
		Chunks []string `json:"substring_chunks"`
		Words  *string  `json:"substring_words"`
		Chars  *string  `json:"substring_chars"`
	}
	if err := d.Decode(&o); err != nil {
		return 0, 0, c.wrap(n.at, "%regex works with substring_chunks, substring_words or substring_chars", err)
	}
	given := 0
	for _, is := range []bool{o.Chunks != nil, o.Words != nil, o.Chars != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return 0, 0, c.errorf(n.at, "%%regex needs one of substring_chunks, substring_words and substring_chars")
	}
	chunks := o.Chunks
	if o.Words != nil {
		chunks = words(*o.Words)
	}
	if o.Chars != nil {
		chunks = strings.Split(*o.Chars, "")
	}
	// After chunk i comes nothing, or chunk i+1 and what may follow it.
	after, all := rx.Empty, []rx.Expr{rx.Empty}
	for i := len(chunks) - 1; i >= 0; i-- {
		run := c.s.Concat(c.s.Literal(chunks[i]), after)
		all = append(all, run)
		after = c.s.Or(rx.Empty, run)
	}
	return c.s.Or(all...), len(n.text), nil
}

// words splits a text into runs of letters, digits and underscores, and the single characters
// between them.
func words(text string) []string {
	var out []string
	inWord := false
	for _, r := range text {
		word := r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
		if word && inWord {
			out[len(out)-1] += string(r)
		} else {
			out = append(out, string(r))
		}
		inWord = word
	}
	return out
}
