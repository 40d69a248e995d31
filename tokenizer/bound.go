package tokenizer

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// A bound says how long a text one id may stand for.
type bound struct {
	bytes int  // of text per id, at most; 0: any number
	blank bool // white space does not count: it may be dropped
	makes bool // other characters may become white space
}

// The factors by which a normalizer step may shorten a text, at most.
const (
	composedBytes = 16 // a character of four parts, each of four bytes
	loweredBytes  = 3  // the Kelvin sign, which becomes a k
)

// newBound returns the bound of a complete tokenizer. It covers byte pair encoding that gives every
// byte an id. Other models have one id for any number of unknown characters.
func newBound(t *Tokenizer) bound {
	var b bound
	for _, m := range []model{t.model, t.typed} {
		switch m := m.(type) {
		case nil:
			continue
		case *bpe:
			for c := range 256 {
				if m.byteLevel && (m.bytes[c] < 0 || m.bars(m.bytes[c])) || !m.byteLevel && (m.fallback == nil || m.fallback[c] < 0) {
					return bound{}
				}
			}
		case *spm:
			if m.fallback == nil || m.fuse {
				return bound{}
			}
			for _, id := range m.fallback {
				if id < 0 {
					return bound{}
				}
			}
		default:
			return bound{}
		}
	}
	for _, token := range t.vocab.tokens {
		b.bytes = max(b.bytes, len(token.text)) // the spelling is no shorter than the text it stands for
	}
	for _, added := range []*addedTokens{t.added, t.folded} {
		for _, list := range [][]addedToken{added.special, added.ordinary} {
			for _, token := range list {
				b.bytes = max(b.bytes, len(token.pattern))
				b.blank = b.blank || token.lstrip || token.rstrip
			}
		}
	}
	for _, step := range t.normalizer {
		if !b.normalize(step) {
			return bound{}
		}
	}
	for _, step := range t.splitter {
		switch step := step.(type) {
		case split:
			if step.behavior == removed {
				return bound{}
			}
		case spaceBefore, metaspace, before, spelled, fixedLength, digitGroups, threesFromRight:
		default:
			return bound{}
		}
	}
	if b.blank && b.makes {
		return bound{}
	}
	return b
}

// normalize adapts b to a step whose output may be shorter than its input. It reports whether there
// is still a bound.
func (b *bound) normalize(step normalStep) bool {
	switch step := step.(type) {
	case prepend:
	case replace:
		from, ok := step.from.(literal)
		b.makes = b.makes || strings.ContainsFunc(step.to, isSpace)
		return ok && len(step.to) >= len(from)
	case unicodeForm:
		if f := norm.Form(step); f != norm.NFC && f != norm.NFKC {
			return false
		}
		b.bytes *= composedBytes
	case lowercase:
		b.bytes *= loweredBytes
	case strip:
		b.blank = true
	case *spText:
		b.blank = b.blank || step.merge
		return step.chars == nil
	default:
		return false
	}
	return true
}

// check ends w's encoding if spans are too long for its limit.
func (b bound) check(w *work, spans []Span) {
	if w == nil || w.limits.Tokens == 0 || b.bytes == 0 {
		return
	}
	n := 0
	for _, s := range spans {
		n += b.count(s.Text)
		w.step(len(s.Text) / 16)
	}
	w.tokens((n + b.bytes - 1) / b.bytes)
}

// count returns how many bytes of text become ids. If white space may be dropped, it counts only
// the visible characters of ASCII: for other bytes it would have to decode the text to rule out
// white space.
func (b bound) count(text string) int {
	if !b.blank {
		return len(text)
	}
	n := 0
	for i := range len(text) {
		if c := text[i]; c > ' ' && c < 0x7f {
			n++
		}
	}
	return n
}
