package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// mapRunes replaces each character by f of it, and keeps its origin.
func (in *interp) mapRunes(s *Str, f func(r rune) string) *Str {
	b := in.builder()
	for i := 0; i < len(s.s); {
		in.step(1)
		r, n := utf8.DecodeRuneInString(s.s[i:])
		if to := f(r); to == s.s[i:i+n] {
			b.slice(s, i, i+n)
		} else {
			b.write(to, s.origin(i))
		}
		i += n
	}
	return b.done()
}

// mapUniform replaces the text of s as a whole when that is plain ASCII, of
// one origin, and so needs no account of each character.
func (in *interp) mapUniform(s *Str, f func(string) string) (*Str, bool) {
	if s.runs != nil || !in.isASCII(s.s) {
		return nil, false
	}
	in.scan(4 * len(s.s)) // it is looked at, byte by byte, before it is changed
	b := in.builder()
	for i := 0; i < len(s.s); i += stretch {
		b.write(f(s.s[i:min(i+stretch, len(s.s))]), s.tmpl)
	}
	return b.done(), true
}

func (in *interp) upper(s *Str) *Str {
	if out, ok := in.mapUniform(s, strings.ToUpper); ok {
		return out
	}
	return in.mapRunes(s, in.upperRune)
}

func (in *interp) lower(s *Str) *Str {
	if out, ok := in.mapUniform(s, strings.ToLower); ok {
		return out
	}
	return in.mapRunes(s, lowerRune)
}

// titleWhere writes the characters for which starts holds in title case, and
// all others in lower case.
func (in *interp) titleWhere(s *Str, starts func(r rune) bool) *Str {
	return in.mapRunes(s, func(r rune) string {
		switch {
		case !starts(r):
			return lowerRune(r)
		case r < utf8.RuneSelf:
			return string(unicode.ToUpper(r))
		}
		in.step(stepsPerCase)
		return cases.Title(language.Und, cases.NoLower).String(string(r))
	})
}

func (in *interp) capitalize(s *Str) *Str {
	first := true
	return in.titleWhere(s, func(rune) bool {
		was := first
		first = false
		return was
	})
}

// titlecase is str.title: a letter after another one is lower case, every
// other one is title case.
func (in *interp) titlecase(s *Str) *Str {
	inWord := false
	return in.titleWhere(s, func(r rune) bool {
		was := inWord
		inWord = isUpper(r) || isLower(r) || unicode.IsTitle(r)
		return !was
	})
}

// titleWords is the filter title, which unlike the method splits words at
// white space and opening brackets only.
func (in *interp) titleWords(s *Str) *Str {
	start := true
	return in.titleWhere(s, func(r rune) bool {
		was := start
		start = isSpace(r) || strings.ContainsRune("-({[<", r)
		return was
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

func lowerRune(r rune) string {
	if r == 'İ' {
		return "i\u0307"
	}
	return string(unicode.ToLower(r))
}

func isUpper(r rune) bool { return unicode.In(r, unicode.Lu, unicode.Other_Uppercase) }
func isLower(r rune) bool { return unicode.In(r, unicode.Ll, unicode.Other_Lowercase) }

// hasCase is str.isupper and str.islower: some letter has the wanted case and
// none has another.
func (in *interp) hasCase(s string, wanted, other func(rune) bool) bool {
	found := false
	return in.indexFunc(s, func(r rune) bool {
		found = found || wanted(r)
		return other(r) || unicode.IsTitle(r)
	}) < 0 && found
}
