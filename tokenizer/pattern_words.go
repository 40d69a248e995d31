package tokenizer

import (
	"cmp"
	"strings"
)

// words describes patterns like OpenAI's cl100k and o200k. The alternatives, in this order, are
// contractions, words with one leading character, numbers, punctuation with the line breaks after
// it, white space up to its last line break, and other white space.
type words struct {
	contractions bool   // 's, 't and so on in any case are an alternative
	cased        bool   // words end before an upper-case letter that follows a lower-case one
	suffixes     bool   // contractions belong to the preceding word
	longS        bool   // contractions ignore case as Unicode does, where ſ is an s
	letters      class  // the letters of words, unless cased; 0 for any letter
	noSymbols    class  // excluded from punctuation, with white space and numbers; 0 for any letter
	digits       int    // most digits of a number; 0 for no limit
	tail         string // characters that may follow punctuation
}

var (
	llama3    = words{contractions: true, longS: true, digits: 3, tail: "\r\n"}
	qwen2     = words{contractions: true, longS: true, digits: 1, tail: "\r\n"}
	qwen35    = words{contractions: true, longS: true, letters: anyLetter | mark, noSymbols: anyLetter | mark, digits: 1, tail: "\r\n"}
	seedCoder = words{contractions: true, longS: true, digits: 1}
	gpt4o     = words{cased: true, suffixes: true, longS: true, digits: 3, tail: "\r\n/"}
	tekken    = words{cased: true, digits: 1, tail: "\r\n/"}
)

// matcher returns a matcher that takes the classes of characters from of.
func (o words) matcher(of classTable) matcher {
	letters, noSymbols := cmp.Or(o.letters, anyLetter), cmp.Or(o.noSymbols, anyLetter)
	return of.matcher(func(p *properties, w *work, text string, i int) int {
		if o.contractions {
			if end := matchContraction(text, i, o.longS); end > i {
				return end
			}
		}
		var end int
		if o.cased {
			end = p.matchCasedWord(w, text, i)
		} else {
			end = p.matchWord(w, text, i, letters)
		}
		if end > i {
			if o.suffixes && end < len(text) {
				return matchContraction(text, end, o.longS)
			}
			return end
		}
		c, _ := p.at(text, i)
		if c&number != 0 {
			return p.skipSome(w, text, i, number, o.digits)
		}
		if end := p.matchSymbols(w, text, i, space|noSymbols|number); end > i {
			return end + len(text[end:]) - len(strings.TrimLeft(text[end:], o.tail))
		}
		if c&space != 0 {
			return p.matchSpace(w, text, i, true)
		}
		return i
	})
}

// matchContraction matches (?i:'s|'t|'re|'ve|'m|'ll|'d). With longS it folds case as Unicode does,
// where ſ is an s.
func matchContraction(text string, i int, longS bool) int {
	if text[i] != '\'' || i+1 == len(text) {
		return i
	}
	const upperToLower = 0x20
	rest := text[i+1:]
	switch first := rest[0] | upperToLower; first {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v', 'l':
		second := byte('e')
		if first == 'l' {
			second = 'l'
		}
		if len(rest) > 1 && rest[1]|upperToLower == second {
			return i + 3
		}
	}
	if longS && strings.HasPrefix(rest, "ſ") {
		return i + 1 + len("ſ")
	}
	return i
}

// matchWord matches [^\r\n\p{L}\p{N}]?\p{L}+ with letters in place of \p{L}.
func (p *properties) matchWord(w *work, text string, i int, letters class) int {
	if c, n := p.at(text, i); c&(anyLetter|number) == 0 && text[i] != '\r' && text[i] != '\n' {
		if end := p.skip(w, text, i+n, letters); end > i+n {
			return end
		}
	}
	return p.skip(w, text, i, letters)
}

// matchCasedWord matches, with U for [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and L for [\p{Ll}\p{Lm}\p{Lo}\p{M}],
// [^\r\n\p{L}\p{N}]?U*L+ or [^\r\n\p{L}\p{N}]?U+L*. The sets overlap, so that U* may have to give back
// what L+ needs.
func (p *properties) matchCasedWord(w *work, text string, i int) int {
	start := i // after the optional character
	if c, n := p.at(text, i); c&(anyLetter|number) == 0 && text[i] != '\r' && text[i] != '\n' {
		start += n
	}
	if end := p.matchToLower(w, text, start); end > start {
		return end
	}
	if start > i { // without the optional character
		if end := p.matchToLower(w, text, i); end > i {
			return end
		}
	}
	if end := p.matchFromUpper(w, text, start); end > start {
		return end
	}
	if start > i {
		return p.matchFromUpper(w, text, i)
	}
	return i
}

// matchToLower matches U*L+: the most of U that leaves one character of L, then all of L.
func (p *properties) matchToLower(w *work, text string, i int) int {
	lastBoth := -1 // the end of the last character in U's run that is also in L
	at := i
	for at < len(text) {
		c, n := p.at(text, at)
		if c&(upper|letter|mark) == 0 {
			break
		}
		at += n
		w.step(n)
		if c&(letter|mark) != 0 {
			lastBoth = at
		}
	}
	if end := p.skip(w, text, at, lower|letter|mark); end > at {
		return end
	}
	if lastBoth >= 0 {
		return lastBoth
	}
	return i
}

// matchFromUpper matches U+L*.
func (p *properties) matchFromUpper(w *work, text string, i int) int {
	end := p.skip(w, text, i, upper|letter|mark)
	if end == i {
		return i
	}
	return p.skip(w, text, end, lower|letter|mark)
}

// matchSymbols matches " ?[^...]+" with the classes in except between the brackets.
func (p *properties) matchSymbols(w *work, text string, i int, except class) int {
	start := i
	if text[i] == ' ' {
		start++
	}
	end := start
	for end < len(text) {
		c, n := p.at(text, end)
		if c&except != 0 {
			break
		}
		end += n
		w.step(n)
	}
	if end == start {
		return i
	}
	return end
}

// matchSpace matches \s+(?!\S)|\s+, with lines after the alternative \s*[\r\n]+. The character at i
// is white space.
func (p *properties) matchSpace(w *work, text string, i int, lines bool) int {
	end, last, afterBreak := i, i, i
	for end < len(text) {
		c, n := p.at(text, end)
		if c&space == 0 {
			break
		}
		last = end
		end += n
		w.step(n)
		if b := text[last]; b == '\r' || b == '\n' {
			afterBreak = end
		}
	}
	switch {
	case lines && afterBreak > i:
		return afterBreak
	case end == len(text) || last == i:
		return end
	default:
		return last // the last white space joins the text after it
	}
}

// skip returns the end of the run of characters in c that begins at i.
func (p *properties) skip(w *work, text string, i int, c class) int {
	for i < len(text) {
		at, n := p.at(text, i)
		if at&c == 0 {
			break
		}
		i += n
		w.step(n)
	}
	return i
}

// skipSome returns the end of the first limit characters (0: any number) of the run in c that
// begins at i.
func (p *properties) skipSome(w *work, text string, i int, c class, limit int) int {
	for n := 0; i < len(text) && (limit == 0 || n < limit); n++ {
		at, size := p.at(text, i)
		if at&c == 0 {
			break
		}
		i += size
		w.step(size)
	}
	return i
}

// matchGPT2 matches 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+.
func (p *properties) matchGPT2(w *work, text string, i int) int {
	if text[i] == '\'' {
		for _, c := range [...]string{"s", "t", "re", "ve", "m", "ll", "d"} {
			if strings.HasPrefix(text[i+1:], c) {
				return i + 1 + len(c)
			}
		}
	}
	start := i
	if text[i] == ' ' {
		start++
	}
	if end := p.skip(w, text, start, anyLetter); end > start {
		return end
	}
	if end := p.skip(w, text, start, number); end > start {
		return end
	}
	if end := p.matchSymbols(w, text, i, space|anyLetter|number); end > i {
		return end
	}
	return p.matchSpace(w, text, i, false)
}
