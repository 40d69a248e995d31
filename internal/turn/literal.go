package turn

import "strings"

// A sym is a byte of a turn and its origin.
type sym uint16

const (
	symSpecial sym = 1 << 8 // from a special token or the template
	symPrompt  sym = 1 << 9 // from the prompt: never part of the output
)

// A literal is a fixed text of a form: words that must match exactly, and white space between them
// of any length, also none.
type literal struct {
	words      [][]sym
	lead, tail string // the white space before and after the words
}

// maxGap limits the white space between two words of a literal, in bytes.
const maxGap = 64

func isSpace(s sym) bool {
	switch byte(s) {
	case ' ', '\n', '\t', '\r':
		return s&symSpecial == 0 || s&symPrompt != 0
	}
	return false
}

const spaces = " \n\t\r"

// newLiteral compiles a text. A special token of the vocabulary in text must match as a special
// token; special is nil if the vocabulary is unknown. Each byte of cuts is a word of its own.
func newLiteral(text string, special func(string) bool, cuts string) literal {
	var l literal
	core := strings.Trim(text, spaces)
	if core == "" {
		l.lead = text
		return l
	}
	at := strings.Index(text, core)
	l.lead, l.tail = text[:at], text[at+len(core):]
	marks := specialBytes(core, special)
	var word []sym
	flush := func() {
		if len(word) > 0 {
			l.words, word = append(l.words, word), nil
		}
	}
	for i := range len(core) {
		c := core[i]
		s := sym(c)
		if marks[i] {
			s |= symSpecial
		}
		switch {
		case !marks[i] && strings.IndexByte(spaces, c) >= 0:
			flush()
		case strings.IndexByte(cuts, c) >= 0:
			flush()
			l.words = append(l.words, []sym{s})
		default:
			word = append(word, s)
		}
	}
	flush()
	return l
}

// maxSpecial limits the length in bytes of a special token in a mark.
const maxSpecial = 64

// specialBytes returns which bytes of text belong to special tokens. It takes the longest token
// first, from left to right.
func specialBytes(text string, special func(string) bool) []bool {
	marks := make([]bool, len(text))
	if special == nil {
		return marks
	}
	for i := 0; i < len(text); {
		n := min(maxSpecial, len(text)-i)
		for n > 0 && !special(text[i:i+n]) {
			n--
		}
		for j := range n {
			marks[i+j] = true
		}
		i += max(n, 1)
	}
	return marks
}

func (l *literal) empty() bool { return len(l.words) == 0 }

// isSpecial reports whether the literal begins with a special token.
func (l *literal) isSpecial() bool { return !l.empty() && l.words[0][0]&symSpecial != 0 }

// A verdict is the state of a match for which more input may follow.
type verdict int

const (
	no verdict = iota
	maybe
	yes
)

func same(mark, s sym) bool {
	return byte(mark) == byte(s) && (mark&symSpecial == 0 || s&symSpecial != 0)
}

// match reports whether in begins with the words of the literal, and returns how many syms they
// take. final means that no input follows in.
func (l *literal) match(in []sym, final bool) (int, verdict) {
	at := 0
	for i, word := range l.words {
		if i > 0 {
			gap := 0
			for at < len(in) && isSpace(in[at]) && !same(word[0], in[at]) {
				at++
				if gap++; gap > maxGap {
					return 0, no
				}
			}
		}
		for _, w := range word {
			if at == len(in) {
				if final {
					return 0, no
				}
				return 0, maybe
			}
			if !same(w, in[at]) {
				return 0, no
			}
			at++
		}
	}
	return at, yes
}

// skipSpace returns the number of white space syms at the start of in.
func skipSpace(in []sym) int {
	n := 0
	for n < len(in) && isSpace(in[n]) {
		n++
	}
	return n
}

// plain returns the text of syms, without those from the prompt.
func plain(in []sym) []byte {
	out := make([]byte, 0, len(in))
	for _, s := range in {
		if s&symPrompt == 0 {
			out = append(out, byte(s))
		}
	}
	return out
}
