// Package tags makes grammars of structural tags: free text up to a trigger, then the content of a
// tag, then free text again. [Triggered] is the form for Go. Compile reads the two JSON forms that
// vLLM accepts as structural_tag.
//
// Free text is any UTF-8 that contains no complete trigger, however it is split into tokens.
package tags

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// ErrTags is wrapped by errors about inconsistent tags.
var ErrTags = errors.New("structural tags")

// A Tag is a begin, a content and an end.
type Tag struct {
	Begin   string
	Special bool // Begin is a single special token
	Content grammar.Symbol
	End     string
}

// Triggered is free text with tags in it. After a trigger, the text must continue with one of the
// tags that begin with the trigger.
type Triggered struct {
	Triggers []string // if empty, each Begin is a trigger
	Tags     []Tag

	AtLeastOne     bool     // the text starts with a tag
	StopAfterFirst bool     // the text ends after the first tag
	Excludes       []string // texts that free text must not contain
}

// Symbol returns the symbol of t. special reports whether a text is that of one special token; it
// may be nil.
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
	ends     []string // if not empty, one of these ends the whole and is part of it
	first    bool     // a branch comes first
	once     bool     // the text ends after the first branch
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

// groups holds the branches as alternatives: found includes the free text before them, direct does
// not.
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
	plain := map[string][][]grammar.Symbol{} // alternatives after each trigger that is plain text
	var behind [][]grammar.Symbol            // alternatives after free text that stops before the trigger
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

// apart reports whether free text may stop before each of ends: whether no free text followed by an
// end completes one of stops earlier than the end does. A begin such as <a> is apart. aa is not,
// since after the free text a, the trigger aa ends one byte early. Ends that are apart need one
// lexeme together, others one each.
func (m *maker) apart(free rx.Expr, ends, stops []string) bool {
	return m.s.IsEmpty(m.s.And(m.s.Concat(free, m.oneOf(ends)),
		m.s.Concat(rx.Anything, m.oneOf(stops), m.s.Bytes(rx.AllBytes), rx.Anything)))
}

// ending returns the last free text of d, with the end that follows.
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

// any returns all texts.
func (m *maker) any() rx.Expr {
	return m.s.Repeat(m.s.Runes(rx.RuneRange{Lo: 0, Hi: 0x10FFFF}), 0, -1)
}

// free returns the texts of e that contain none of stops.
func (m *maker) free(e rx.Expr, stops []string) rx.Expr {
	return m.s.And(e, m.s.Not(m.s.Concat(rx.Anything, m.oneOf(stops), rx.Anything)))
}

// until returns the texts of e followed by one of ends, in which none of stops ends before the last
// byte.
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

// literals returns a terminal for one of the texts, or no symbol if there are none.
func (m *maker) literals(texts []string) []grammar.Symbol {
	if len(texts) == 0 {
		return nil
	}
	return []grammar.Symbol{m.b.Lexeme(m.oneOf(texts))}
}

// rule returns a symbol for one of the alternatives.
func (m *maker) rule(alternatives [][]grammar.Symbol) grammar.Symbol {
	if len(alternatives) == 1 && len(alternatives[0]) == 1 {
		return alternatives[0][0]
	}
	r := m.b.Rule("tags")
	m.b.Define(r, alternatives...)
	return r
}
