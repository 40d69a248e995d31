package jsonschema

import (
	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// membersOf returns the rules for the text after the opening brace of an object.
func (c *compiler) membersOf(f *objectForm) grammar.Symbol {
	e := &memberRules{compiler: c, f: f, rules: map[memberRule]grammar.Symbol{}}
	if c.o.Order == AnyOrder {
		return e.anyOrder()
	}
	return e.rest(memberRule{memberState{wanted: f.wanted}, true})
}

// memberRules makes the rules of one object form.
type memberRules struct {
	*compiler
	f     *objectForm
	rules map[memberRule]grammar.Symbol
}

// A memberRule is a state together with whether the next member is the first.
type memberRule struct {
	memberState
	first bool
}

// rest returns the rule for the members from a state on and the closing brace.
func (e *memberRules) rest(s memberRule) grammar.Symbol {
	if rule, ok := e.rules[s]; ok {
		return rule
	}
	rule := e.b.Lazy("members", func() [][]grammar.Symbol {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.alternatives(s)
	})
	e.rules[s] = rule
	return rule
}

// alternatives returns the choices in state s: the next key in order, or the rest without it.
func (e *memberRules) alternatives(s memberRule) [][]grammar.Symbol {
	if s.next == len(e.f.keys) {
		return [][]grammar.Symbol{{e.openMembers(s.memberState, s.first, nil)}}
	}
	var out [][]grammar.Symbol
	key := &e.f.keys[s.next]
	for _, v := range key.variants {
		next := memberState{s.next + 1, s.wanted &^ v.claims, e.f.counted(s.count + 1)}
		if v.goal.inhabited && v.claims&^s.wanted == 0 && e.f.alive(next) {
			out = append(out, []grammar.Symbol{e.keyLexeme(key.name, s.first), e.symbolOf(v.goal), e.rest(memberRule{next, false})})
		}
	}
	if skip := (memberState{s.next + 1, s.wanted, s.count}); !key.required && e.f.alive(skip) {
		out = append(out, []grammar.Symbol{e.rest(memberRule{skip, s.first})})
	}
	return out
}

func (e *memberRules) keyLexeme(name string, first bool) grammar.Symbol {
	return e.b.Lexeme(e.key(e.space, e.strings.quoted(e.strings.text(name)), first))
}

// usedKeys is a linked list of the keys of an object that the schema does not name.
type usedKeys struct {
	key    string
	before *usedKeys
}

// openMembers returns the rule for members that the schema does not name, and the closing brace. No
// key occurs twice.
func (e *memberRules) openMembers(s memberState, first bool, used *usedKeys) grammar.Symbol {
	b := e.b
	if used != nil {
		b = b.Fork() // these rules are garbage collected with the text
	}
	var out [][]grammar.Symbol
	if s.wanted == 0 && s.count >= e.f.min {
		out = append(out, []grammar.Symbol{e.rightBrace})
	}
	for i := range e.f.open {
		open := &e.f.open[i]
		var after []afterKey
		for _, v := range open.variants {
			next := memberState{s.next, s.wanted &^ v.claims, e.f.counted(s.count + 1)}
			if v.goal.inhabited && v.claims&^s.wanted == 0 && e.f.alive(next) {
				after = append(after, afterKey{v.goal, func(used *usedKeys) grammar.Symbol { return e.openMembers(next, false, used) }})
			}
		}
		if len(after) > 0 {
			out = e.openKey(b, out, open, after, first, used)
		}
	}
	rule := b.Rule("members")
	b.Define(rule, out...)
	return rule
}

// afterKey is a possible value of a key, and the rest of the object given the used keys.
type afterKey struct {
	goal *goal
	rest func(*usedKeys) grammar.Symbol
}

// openKey appends to out the alternatives for an unused key of a class and all that follows it.
func (e *memberRules) openKey(b *grammar.Builder, out [][]grammar.Symbol, open *openKeys, after []afterKey, first bool, used *usedKeys) [][]grammar.Symbol {
	lexeme := e.openLexeme(open, first, used)
	fits := func(text []byte) bool { return !used.has(keyIn(text)) }
	if used == nil {
		fits = nil
	}
	for _, a := range after {
		key, rest := b.Bind(lexeme, fits, func(text []byte) grammar.Symbol {
			e.mu.Lock()
			defer e.mu.Unlock()
			return a.rest(&usedKeys{keyIn(text), used})
		})
		out = append(out, []grammar.Symbol{key, e.colon, e.symbolOf(a.goal), rest})
	}
	return out
}

// openLexeme returns the keys of a class that may come next, with the separator before them.
func (e *memberRules) openLexeme(open *openKeys, first bool, used *usedKeys) rx.Expr {
	i := 0
	if first {
		i = 1
	}
	// If every prefix of a key has more keys than can be used up, it is enough that nothing follows
	// a used one. All these keys are then one lexeme.
	if open.texts.form != formExpr && (open.texts.form != formRange || open.texts.max < 0) || used == nil {
		if open.lexemes[i] == rx.Nothing {
			open.lexemes[i] = e.space.Concat(e.lead(e.space, first), e.strings.quoted(open.texts.spelled(e.strings)))
		}
		return open.lexemes[i]
	}
	texts := open.texts.spelled(e.strings)
	for u := used; u != nil; u = u.before {
		texts = e.space.And(texts, e.space.Not(e.strings.text(u.key)))
	}
	return e.space.Concat(e.lead(e.space, first), e.strings.quoted(texts))
}

func (u *usedKeys) has(key string) bool {
	for ; u != nil; u = u.before {
		if u.key == key {
			return true
		}
	}
	return false
}

// keyIn returns the key in the text of a key lexeme.
func keyIn(text []byte) string {
	for len(text) > 0 && text[0] != '"' {
		text = text[1:]
	}
	r := &jsonReader{text: string(text)}
	key, _ := r.str()
	return key
}
