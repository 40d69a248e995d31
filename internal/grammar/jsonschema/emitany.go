package jsonschema

import (
	"slices"

	"github.com/realizar/realizar/internal/grammar"
)

// anyOrder is the rules for members in any order. Their states are the sets of
// keys that are there, so many that they are not kept: the rules of a text are
// made by builders of their own and collected with it.
func (e *memberRules) anyOrder() grammar.Symbol {
	return e.anyRest(make([]bool, len(e.f.keys)), memberState{wanted: e.f.wanted}, true, nil)
}

// anyRest is the rule for the members after those that are there.
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

// completes is left.alive, which where nothing is counted needs no thought.
func (e *memberRules) completes(left *objectForm, s memberState) bool {
	return s.wanted == 0 && left.max < 0 && s.count >= left.min || left.alive(s)
}

// without is the form without the keys that are there.
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
