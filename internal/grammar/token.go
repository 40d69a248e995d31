package grammar

import "slices"

// A tokenMatch describes the tokens that a terminal of kind tokenKind matches.
type tokenMatch struct {
	special bool     // any special token; the other fields are unused
	not     bool     // all tokens except ids and texts
	ids     []int32  // tokens by id
	texts   []string // special tokens by text
}

// has reports whether m matches token id of v. An end token matches by its id only.
func (m *tokenMatch) has(v *Vocabulary, id int32) bool {
	if m.special {
		return v.isSpecial(id)
	}
	in := slices.Contains(m.ids, id)
	for _, text := range m.texts {
		if at, ok := v.special[text]; ok && at == id {
			in = true
		}
	}
	if m.not {
		return !in && !v.isEnd(id)
	}
	return in
}

// Token returns a terminal that matches the token with this id, whatever its text. No text matches
// it.
func (b *Builder) Token(id int32) Symbol { return b.token(tokenMatch{ids: []int32{id}}) }

// AnySpecial returns a terminal that matches any special token except end tokens.
func (b *Builder) AnySpecial() Symbol { return b.token(tokenMatch{special: true}) }

// NotTokens returns a terminal that matches any one token except those with these ids, the special
// tokens with these texts, and end tokens.
func (b *Builder) NotTokens(ids []int32, texts []string) Symbol {
	return b.token(tokenMatch{not: true, ids: slices.Clone(ids), texts: slices.Clone(texts)})
}

func (b *Builder) token(m tokenMatch) Symbol {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Symbol{b.terminal(&symbol{kind: tokenKind, match: m})}
}

// Token returns the state after a token of v, and whether the token fits. If not, Token returns s,
// with [State.Err] set if a limit was exceeded. After an end token that ends the text only end
// tokens fit, unless the grammar also continues with that token.
func (s State) Token(v *Vocabulary, id int32) (State, bool) {
	var threads []thread
	if text := v.text(id); len(text) > 0 {
		after, ok := s.read(v, text)
		switch {
		case after.Err() != nil:
			return after, false
		case ok:
			threads = after.c.threads
		}
	}
	g := s.c.grammar
	for _, t := range s.c.threads {
		if t.lex != nil || len(t.set.tokens) == 0 {
			continue
		}
		to, err := g.token(t.set, v, id)
		if err != nil {
			return s.fail(err), false
		}
		if to != nil && to.lives() {
			threads = append(threads, thread{set: to})
		}
	}
	ended := v.isEnd(id) && s.Ends()
	if len(threads) == 0 && !ended {
		return s, false
	}
	return State{&configuration{grammar: g, threads: threads, ended: ended}}, true
}

// token returns the set after token id if s waits for a terminal that matches it, or nil if not.
func (g *Grammar) token(s *set, v *Vocabulary, id int32) (*set, error) {
	sc := g.begin()
	defer g.end(sc)
	sc.maker.reset()
	for _, w := range s.tokens {
		if w.on.kind == specialKind {
			if at, ok := v.special[w.on.name]; !ok || at != id {
				continue
			}
		} else if !v.knows(id) || !w.on.match.has(v, id) {
			continue
		}
		for _, i := range w.items {
			i.dot++
			sc.maker.push(i)
		}
	}
	return g.close(sc)
}

// knows reports whether v has a token id.
func (v *Vocabulary) knows(id int32) bool { return id >= 0 && id < v.size }
