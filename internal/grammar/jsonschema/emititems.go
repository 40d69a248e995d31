package jsonschema

import "github.com/realizar/realizar/internal/grammar"

// itemsOf returns the rules for the text after the opening bracket of an array.
func (c *compiler) itemsOf(f *arrayForm) grammar.Symbol {
	if f.unique {
		return c.uniqueItems(f, uniqueState{})
	}
	e := &itemRules{c, f, map[itemState]grammar.Symbol{}}
	return e.first()
}

// itemRules makes the rules of one array form.
type itemRules struct {
	*compiler
	f     *arrayForm
	rules map[itemState]grammar.Symbol
}

// first returns the rule before the first item.
func (e *itemRules) first() grammar.Symbol {
	return e.b.Lazy("items", func() [][]grammar.Symbol {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.alternatives(itemState{}, e.tokens.space)
	})
}

// rest returns the rule after an item.
func (e *itemRules) rest(s itemState) grammar.Symbol {
	if rule, ok := e.rules[s]; ok {
		return rule
	}
	rule := e.b.Lazy("items", func() [][]grammar.Symbol {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.alternatives(s, e.comma)
	})
	e.rules[s] = rule
	return rule
}

// alternatives returns the choices in state s: another item after lead, or the closing bracket.
func (e *itemRules) alternatives(s itemState, lead grammar.Symbol) [][]grammar.Symbol {
	var out [][]grammar.Symbol
	if e.f.ends(s) {
		out = append(out, []grammar.Symbol{e.rightBracket})
	}
	for _, v := range e.f.variantsAt(s.n) {
		next, ok := e.f.after(s, v.claims)
		if !ok || !v.goal.inhabited || !e.f.alive(next) {
			continue
		}
		item := []grammar.Symbol{lead, e.symbolOf(v.goal)}
		if next == s && len(e.f.tail) == 1 {
			// Unbounded items of one kind: a left-recursive rule.
			return append(out, []grammar.Symbol{e.loop(lead, v.goal), e.rightBracket})
		}
		out = append(out, append(item, e.rest(next)))
	}
	return out
}

// loop returns a rule for one or more items, the first after lead.
func (e *itemRules) loop(lead grammar.Symbol, g *goal) grammar.Symbol {
	loop := e.b.Rule("items")
	e.b.Define(loop,
		[]grammar.Symbol{lead, e.symbolOf(g)},
		[]grammar.Symbol{loop, e.comma, e.symbolOf(g)})
	return loop
}
