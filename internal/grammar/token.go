package grammar

import "slices"

// tokenMatch is the tokens that a terminal of kind tokenKind is.
type tokenMatch struct {
	special bool     // any special one; otherwise
	not     bool     // all but these
	ids     []int32  // by number
	texts   []string // or special ones by text
}

// has reports whether token id of v is one of m. No end token is, but by its number.
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

// Token is a terminal: the token with this number, whatever its text. No text is one of it.
func (b *Builder) Token(id int32) Symbol { return b.token(tokenMatch{ids: []int32{id}}) }

// AnySpecial is a terminal: any special token but those that end an answer.
func (b *Builder) AnySpecial() Symbol { return b.token(tokenMatch{special: true}) }

// NotTokens is a terminal: any one token but those with these numbers and the special ones
// with these texts, and those that end an answer.
func (b *Builder) NotTokens(ids []int32, texts []string) Symbol {
	return b.token(tokenMatch{not: true, ids: slices.Clone(ids), texts: slices.Clone(texts)})
}

func (b *Builder) token(m tokenMatch) Symbol {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Symbol{b.terminal(&symbol{kind: tokenKind, match: m})}
}
