package tags

import "github.com/realizar/realizar/internal/grammar"

// maxSpecial is the largest length of a special token's text in bytes.
const maxSpecial = 256

// A piece is a part of a text: a special token or plain text.
type piece struct {
	text    string
	special bool
}

// pieces splits a text at its special tokens. It takes the longest token at each position.
func (m *maker) pieces(text string) []piece {
	var out []piece
	begin := 0
	flush := func(end int) {
		if begin < end {
			out = append(out, piece{text: text[begin:end]})
		}
	}
	for i := 0; i < len(text) && m.special != nil; {
		n := min(maxSpecial, len(text)-i)
		for n > 0 && !m.special(text[i:i+n]) {
			n--
		}
		if n == 0 {
			i++
			continue
		}
		flush(i)
		out = append(out, piece{text[i : i+n], true})
		i += n
		begin = i
	}
	flush(len(text))
	return out
}

// text returns a fixed text as symbols, with its special tokens as terminals of their own.
func (m *maker) text(text string) []grammar.Symbol {
	var out []grammar.Symbol
	for _, p := range m.pieces(text) {
		if p.special {
			out = append(out, m.b.Special(p.text))
		} else {
			out = append(out, m.b.Lexeme(m.s.Literal(p.text)))
		}
	}
	return out
}

// specialBefore reports whether a special token of text begins before byte n.
func (m *maker) specialBefore(text string, n int) bool {
	at := 0
	for _, p := range m.pieces(text) {
		if at < n && p.special {
			return true
		}
		at += len(p.text)
	}
	return false
}
