package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// mapRunes replaces each character by f of it, and keeps its origin. F gets
// the text before and after the character as well.
func (in *interp) mapRunes(s *Str, f func(before string, r rune, after string) string) *Str {
	b := in.builder()
	for i := 0; i < len(s.s); {
		in.step(1)
		r, n := utf8.DecodeRuneInString(s.s[i:])
		if to := f(s.s[:i], r, s.s[i+n:]); to == s.s[i:i+n] {
			b.slice(s, i, i+n)
		} else {
			b.write(to, s.origin(i))
		}
		i += n
	}
	out := b.done()
	out.safe = s.safe
	return out
}

// mapUniform replaces the text of s as a whole when that is plain ASCII, of
// one origin, and so needs no account of each character.
func (in *interp) mapUniform(s *Str, f func(string) string) (*Str, bool) {
	if s.runs != nil || !in.isASCII(s.s) {
		return nil, false
	}
	in.scan(4 * len(s.s)) // it is looked at, byte by byte, before it is changed
	if len(s.s) <= stretch {
		in.grow(len(s.s))
		return &Str{s: f(s.s), tmpl: s.tmpl, safe: s.safe}, true
	}
	b := in.builder()
	for i := 0; i < len(s.s); i += stretch {
		b.write(f(s.s[i:min(i+stretch, len(s.s))]), s.tmpl)
	}
	out := b.done()
	out.safe = s.safe
	return out, true
}

func (in *interp) upper(s *Str) *Str {
	if out, ok := in.mapUniform(s, strings.ToUpper); ok {
		return out
	}
	return in.mapRunes(s, func(_ string, r rune, _ string) string { return in.upperRune(r) })
}

func (in *interp) lower(s *Str) *Str {
	if out, ok := in.mapUniform(s, strings.ToLower); ok {
		return out
	}
	return in.mapRunes(s, lowerRune)
}

func (in *interp) casefold(s *Str) *Str {
	if out, ok := in.mapUniform(s, strings.ToLower); ok {
		return out
	}
	fold := cases.Fold()
	return in.mapRunes(s, func(_ string, r rune, _ string) string {
		if r < utf8.RuneSelf {
			return string(unicode.ToLower(r))
		}
		in.step(stepsPerCase)
		return fold.String(string(r))
	})
}

func (in *interp) swapcase(s *Str) *Str {
	return in.mapRunes(s, func(before string, r rune, after string) string {
		switch {
		case isUpper(r):
			return lowerRune(before, r, after)
		case isLower(r):
			return in.upperRune(r)
		}
		return string(r)
	})
}

func (in *interp) capitalize(s *Str) *Str {
	return in.mapRunes(s, func(before string, r rune, after string) string {
		if before == "" {
			return in.titleRune(r)
		}
		return lowerRune(before, r, after)
	})
}

// titlecase is str.title: a letter after another one is lower case, every
// other one is title case.
func (in *interp) titlecase(s *Str) *Str {
	inWord := false
	return in.mapRunes(s, func(before string, r rune, after string) string {
		was := inWord
		inWord = isCased(r)
		if was {
			return lowerRune(before, r, after)
		}
		return in.titleRune(r)
	})
}

// stepsPerCase is the work of a case conversion by the full rules of Unicode.
const stepsPerCase = 12

func (in *interp) upperRune(r rune) string {
	if r < utf8.RuneSelf {
		return string(unicode.ToUpper(r))
	}
	in.step(stepsPerCase)
	return cases.Upper(language.Und).String(string(r))
}

func (in *interp) titleRune(r rune) string {
	if r < utf8.RuneSelf {
		return string(unicode.ToUpper(r))
	}
	in.step(stepsPerCase)
	return cases.Title(language.Und, cases.NoLower).String(string(r))
}

// lowerRune is the lower case of r, which for a capital sigma depends on
// whether a word ends there.
func lowerRune(before string, r rune, after string) string {
	switch r {
	case 'Σ':
		if endsCased(before) && !startsCased(after) {
			return "ς"
		}
		return "σ"
	case 'İ':
		return "i\u0307"
	}
	return string(unicode.ToLower(r))
}

// endsCased reports whether the last letter of s is cased, marks and
// punctuation inside words aside. It looks no further than a word can be long.
func endsCased(s string) bool {
	for n := 0; n < 64 && s != ""; n++ {
		r, size := utf8.DecodeLastRuneInString(s)
		if !isCaseIgnorable(r) {
			return isCased(r)
		}
		s = s[:len(s)-size]
	}
	return false
}

func startsCased(s string) bool {
	for n := 0; n < 64 && s != ""; n++ {
		r, size := utf8.DecodeRuneInString(s)
		if !isCaseIgnorable(r) {
			return isCased(r)
		}
		s = s[size:]
	}
	return false
}

func isCaseIgnorable(r rune) bool {
	return strings.ContainsRune("'.:^`\u00a8\u00ad\u00af\u00b4\u00b7\u00b8\u2018\u2019\u2024\u2027", r) ||
		unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk)
}

func isUpper(r rune) bool { return unicode.In(r, unicode.Lu, unicode.Other_Uppercase) }
func isLower(r rune) bool { return unicode.In(r, unicode.Ll, unicode.Other_Lowercase) }
func isCased(r rune) bool { return isUpper(r) || isLower(r) || unicode.Is(unicode.Lt, r) }

func isDecimal(r rune) bool { return unicode.Is(unicode.Nd, r) }
func isDigit(r rune) bool   { return unicode.In(r, unicode.Nd, digitTable) }
func isNumeric(r rune) bool { return unicode.In(r, unicode.N, numericTable) }
func isAlnum(r rune) bool   { return unicode.IsLetter(r) || isNumeric(r) }

// hasCase is str.isupper and str.islower: some letter has the wanted case and
// none has another.
func (in *interp) hasCase(s string, wanted, other func(rune) bool) bool {
	found := false
	return in.indexFunc(s, func(r rune) bool {
		found = found || wanted(r)
		return other(r) || unicode.Is(unicode.Lt, r)
	}) < 0 && found
}

// isTitle is str.istitle.
func (in *interp) isTitle(s string) bool {
	found, inWord := false, false
	return in.indexFunc(s, func(r rune) bool {
		was := inWord
		upper := isUpper(r) || unicode.Is(unicode.Lt, r)
		inWord = upper || isLower(r)
		found = found || inWord
		return inWord && upper == was
	}) < 0 && found
}

// isIdentifier is str.isidentifier.
func (in *interp) isIdentifier(s string) bool {
	first := true
	return s != "" && in.indexFunc(s, func(r rune) bool {
		was := first
		first = false
		return !isIdentifierRune(r, was)
	}) < 0
}
