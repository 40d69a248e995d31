// Package tags makes grammars of structural tags: free text until a trigger,
// then what a tag holds, then free text again. It has a form for Go (Triggered)
// and reads the two forms in JSON that vLLM takes as structural_tag.
//
// Free text is any UTF-8 in which no trigger comes to its end, wherever tokens
// begin and end.
package tags

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// ErrTags is the error for tags that make no sense.
var ErrTags = errors.New("structural tags")

// A Tag is a begin, a content and an end.
type Tag struct {
	Begin   string
	Special bool // Begin is one special token
	Content grammar.Symbol
	End     string
}

// Triggered is free text with tags in it. Where the text comes to a trigger, one
// of the tags that begin with it follows.
type Triggered struct {
	Triggers []string // without any, each Begin is one
	Tags     []Tag

	AtLeastOne     bool     // a tag stands at the beginning
	StopAfterFirst bool     // nothing stands behind a tag
	Excludes       []string // what free text may not hold
}

// Symbol returns the symbol of t. special reports whether a text is that of one
// special token; it may be nil.
func (t Triggered) Symbol(b *grammar.Builder, special func(text string) bool) (grammar.Symbol, error) {
	m := &maker{b: b, s: b.Space(), special: special}
	triggers := t.Triggers
	if len(triggers) == 0 {
		for _, tag := range t.Tags {
			triggers = append(triggers, tag.Begin)
		}
	}
	d := dispatch{first: t.AtLeastOne, once: t.StopAfterFirst, excludes: t.Excludes, triggers: triggers}
	for _, tag := range t.Tags {
		own := tag
		d.branches = append(d.branches, branch{begin: own.Begin, special: own.Special, rest: append([]grammar.Symbol{own.Content}, m.text(own.End)...)})
	}
	all, err := m.dispatch(d)
	if err != nil {
		return grammar.Symbol{}, err
	}
	return m.rule(all), b.Space().Err()
}

// A maker makes symbols.
type maker struct {
	b       *grammar.Builder
	s       *rx.Space
	special func(text string) bool
}

// A dispatch is free text with branches in it.
type dispatch struct {
	triggers []string
	branches []branch
	excludes []string
	ends     []string // if any, one of these follows the whole and is a part of it
	first    bool     // a branch stands at the beginning
	once     bool     // nothing stands behind a branch
}

// A branch begins with a trigger or is one.
type branch struct {
	begin   string
	special bool
	rest    []grammar.Symbol
}

// dispatch returns the alternatives of d.
func (m *maker) dispatch(d dispatch) ([][]grammar.Symbol, error) {
	groups, err := m.groups(d)
	if err != nil {
		return nil, err
	}
	last, err := m.ending(d)
	if err != nil {
		return nil, err
	}
	direct := m.rule(groups.direct)
	behind := last
	if d.once {
		behind = m.literals(d.ends)
	}
	switch {
	case d.first && d.once:
		return [][]grammar.Symbol{slices.Concat([]grammar.Symbol{direct}, behind)}, nil
	case d.once:
		return [][]grammar.Symbol{last, slices.Concat([]grammar.Symbol{m.rule(groups.found)}, behind)}, nil
	}
	found := m.rule(groups.found)
	more := m.b.Rule("tags")
	m.b.Define(more, nil, []grammar.Symbol{more, found})
	if d.first {
		return [][]grammar.Symbol{slices.Concat([]grammar.Symbol{direct, more}, behind)}, nil
	}
	return [][]grammar.Symbol{slices.Concat([]grammar.Symbol{more}, behind)}, nil
}

// groups are the branches as alternatives: found behind free text, or direct.
type groups struct{ found, direct [][]grammar.Symbol }

func (m *maker) groups(d dispatch) (groups, error) {
	var g groups
	for i, t := range d.triggers {
		if t == "" {
			return g, fmt.Errorf("%w: a trigger is empty", ErrTags)
		}
		for j, u := range d.triggers {
			if i != j && strings.HasPrefix(u, t) && (u != t || i < j) {
				return g, fmt.Errorf("%w: the trigger %q begins as the trigger %q and is never reached", ErrTags, u, t)
			}
		}
	}
	if slices.Contains(d.excludes, "") {
		return g, fmt.Errorf("%w: an excluded text is empty", ErrTags)
	}
	if len(d.branches) == 0 {
		return g, fmt.Errorf("%w: there are no tags", ErrTags)
	}
	stops := slices.Concat(d.triggers, d.excludes, d.ends)
	free := m.free(m.any(), stops)
	apart := m.apart(free, slices.Concat(d.triggers, d.ends), stops)
	plain := map[string][][]grammar.Symbol{} // what follows triggers that are plain text
	var behind [][]grammar.Symbol            // what follows free text that ends before it
	used := map[string]bool{}
	for _, x := range d.branches {
		i := slices.IndexFunc(d.triggers, func(t string) bool { return strings.HasPrefix(x.begin, t) })
		if i < 0 {
			return g, fmt.Errorf("%w: the begin %q begins with none of the triggers %q", ErrTags, x.begin, d.triggers)
		}
		t := d.triggers[i]
		used[t] = true
		whole := m.text(x.begin)
		if x.special {
			whole = []grammar.Symbol{m.b.Special(x.begin)}
		}
		g.direct = append(g.direct, slices.Concat(whole, x.rest))
		if apart || x.special || m.specialBefore(x.begin, len(t)) {
			behind = append(behind, slices.Concat(whole, x.rest))
			continue
		}
		plain[t] = append(plain[t], slices.Concat(m.text(x.begin[len(t):]), x.rest))
	}
	for _, t := range d.triggers {
		if !used[t] {
			return g, fmt.Errorf("%w: no tag begins with the trigger %q", ErrTags, t)
		}
		if all := plain[t]; all != nil {
			until := m.until(m.any(), []string{t}, stops)
			if m.s.IsEmpty(until) && m.s.Err() == nil {
				return g, fmt.Errorf("%w: the trigger %q holds an excluded text", ErrTags, t)
			}
			g.found = append(g.found, []grammar.Symbol{m.b.Lexeme(until), m.rule(all)})
		}
	}
	if behind != nil {
		g.found = append(g.found, []grammar.Symbol{m.b.Lexeme(free), m.rule(behind)})
	}
	return g, nil
}

// apart reports whether free text may end before each of ends: whether behind
// no free text one of them completes one of stops before its own end. A begin
// such as <a> is apart; aa is not, for behind a it ends where it begins. What is
// apart needs one lexeme for all ends, what is not one for each.
func (m *maker) apart(free rx.Expr, ends, stops []string) bool {
	return m.s.IsEmpty(m.s.And(m.s.Concat(free, m.oneOf(ends)),
		m.s.Concat(rx.Anything, m.oneOf(stops), m.s.Bytes(rx.AllBytes), rx.Anything)))
}

// ending is the last free text of d, with the end that follows.
func (m *maker) ending(d dispatch) ([]grammar.Symbol, error) {
	stops := slices.Concat(d.triggers, d.excludes)
	if len(d.ends) == 0 {
		return []grammar.Symbol{m.b.Lexeme(m.free(m.any(), stops))}, nil
	}
	e := m.until(m.any(), d.ends, slices.Concat(stops, d.ends))
	if m.s.IsEmpty(e) && m.s.Err() == nil {
		return nil, fmt.Errorf("%w: the end %q holds a trigger or an excluded text", ErrTags, d.ends)
	}
	return []grammar.Symbol{m.b.Lexeme(e)}, nil
}

// any is all texts.
func (m *maker) any() rx.Expr {
	return m.s.Repeat(m.s.Runes(rx.RuneRange{Lo: 0, Hi: 0x10FFFF}), 0, -1)
}

// free is the texts of e in which none of stops is.
func (m *maker) free(e rx.Expr, stops []string) rx.Expr {
	return m.s.And(e, m.s.Not(m.s.Concat(rx.Anything, m.oneOf(stops), rx.Anything)))
}

// until is the texts of e with one of ends behind them, in which none of stops
// comes to its end before.
func (m *maker) until(e rx.Expr, ends, stops []string) rx.Expr {
	return m.s.And(m.s.Concat(e, m.oneOf(ends)),
		m.s.Not(m.s.Concat(rx.Anything, m.oneOf(stops), m.s.Bytes(rx.AllBytes), rx.Anything)))
}

func (m *maker) oneOf(texts []string) rx.Expr {
	all := make([]rx.Expr, len(texts))
	for i, t := range texts {
		all[i] = m.s.Literal(t)
	}
	return m.s.Or(all...)
}

// literals is one of the texts; no symbol where there are none.
func (m *maker) literals(texts []string) []grammar.Symbol {
	if len(texts) == 0 {
		return nil
	}
	return []grammar.Symbol{m.b.Lexeme(m.oneOf(texts))}
}

// rule is one of the alternatives.
func (m *maker) rule(alternatives [][]grammar.Symbol) grammar.Symbol {
	if len(alternatives) == 1 && len(alternatives[0]) == 1 {
		return alternatives[0][0]
	}
	r := m.b.Rule("tags")
	m.b.Define(r, alternatives...)
	return r
}
