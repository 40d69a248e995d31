package jsonschema

import (
	"slices"

	"github.com/realizar/realizar/internal/grammar"
)

// anyOrder returns the rules for members in any order. Their states are sets of present keys, too
// many to keep: builders of their own make the rules, which are garbage collected with the text.
func (e *memberRules) anyOrder() grammar.Symbol {
	return e.anyRest(make([]bool, len(e.f.keys)), memberState{wanted: e.f.wanted}, true, nil)
}

// anyRest returns the rule for the members after those present.
func (e *memberRules) anyRest(there []bool, s memberState, first bool, used *usedKeys) grammar.Symbol {
	b := e.b.Fork()
	return b.Lazy("members", func() [][]grammar.Symbol {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.anyAlternatives(b, there, s, first, used)
	})
}

func (e *memberRules) anyAlternatives(b *grammar.Builder, there []bool, s memberState, first bool, used *usedKeys) [][]grammar.Symbol {
	var out [][]grammar.Symbol
	rest := e.f.without(there)
	if s.wanted == 0 && s.count >= e.f.min && rest.need(0, 0) == 0 {
		out = append(out, []grammar.Symbol{e.rightBrace})
	}
	for i := range e.f.keys {
		if there[i] {
			continue
		}
		now := slices.Clone(there)
		now[i] = true
		left := e.f.without(now)
		for _, v := range e.f.keys[i].variants {
			next := memberState{0, s.wanted &^ v.claims, e.f.counted(s.count + 1)}
			if v.goal.inhabited && v.claims&^s.wanted == 0 && e.completes(left, next) {
				out = append(out, []grammar.Symbol{e.keyLexeme(e.f.keys[i].name, first), e.symbolOf(v.goal), e.anyRest(now, next, false, used)})
			}
		}
	}
	for i := range e.f.open {
		open := &e.f.open[i]
		var after []afterKey
		for _, v := range open.variants {
			next := memberState{0, s.wanted &^ v.claims, e.f.counted(s.count + 1)}
			if v.goal.inhabited && v.claims&^s.wanted == 0 && e.completes(rest, next) {
				after = append(after, afterKey{v.goal, func(used *usedKeys) grammar.Symbol { return e.anyRest(there, next, false, used) }})
			}
		}
		if len(after) > 0 {
			out = e.openKey(b, out, open, after, first, used)
		}
	}
	return out
}

// completes is left.alive with a shortcut for forms that count nothing.
func (e *memberRules) completes(left *objectForm, s memberState) bool {
	return s.wanted == 0 && left.max < 0 && s.count >= left.min || left.alive(s)
}

// without returns the form without the keys already present.
func (f *objectForm) without(there []bool) *objectForm {
	left := *f
	left.needs, left.keys = nil, nil
	for i, key := range f.keys {
		if !there[i] {
			left.keys = append(left.keys, key)
		}
	}
	return &left
}
