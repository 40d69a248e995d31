package rx_test

import (
	"regexp"
	"regexp/syntax"
	"testing"

	"github.com/realizar/realizar/internal/rx"
)

// build is the expression of a parsed one of package regexp/syntax; false where it has what
// sets of strings have not, such as anchors.
func build(s *rx.Space, re *syntax.Regexp) (rx.Expr, bool) {
	subs := make([]rx.Expr, len(re.Sub))
	for i, sub := range re.Sub {
		var ok bool
		if subs[i], ok = build(s, sub); !ok {
			return 0, false
		}
	}
	switch re.Op {
	case syntax.OpNoMatch:
		return rx.Nothing, true
	case syntax.OpEmptyMatch:
		return rx.Empty, true
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return 0, false
		}
		return s.Literal(string(re.Rune)), true
	case syntax.OpCharClass:
		var ranges []rx.RuneRange
		for i := 0; i < len(re.Rune); i += 2 {
			ranges = append(ranges, rx.RuneRange{Lo: re.Rune[i], Hi: re.Rune[i+1]})
		}
		return s.Runes(ranges...), true
	case syntax.OpAnyChar:
		return s.Runes(rx.RuneRange{Lo: 0, Hi: 0x10ffff}), true
	case syntax.OpAnyCharNotNL:
		return s.Runes(rx.RuneRange{Lo: 0, Hi: '\n' - 1}, rx.RuneRange{Lo: '\n' + 1, Hi: 0x10ffff}), true
	case syntax.OpCapture:
		return subs[0], true
	case syntax.OpStar:
		return s.Repeat(subs[0], 0, -1), true
	case syntax.OpPlus:
		return s.Repeat(subs[0], 1, -1), true
	case syntax.OpQuest:
		return s.Repeat(subs[0], 0, 1), true
	case syntax.OpRepeat:
		return s.Repeat(subs[0], re.Min, re.Max), true
	case syntax.OpConcat:
		return s.Concat(subs...), true
	case syntax.OpAlternate:
		return s.Or(subs...), true
	}
	return 0, false
}

// FuzzRegexp compares derivatives and the automaton with package regexp.
func FuzzRegexp(f *testing.F) {
	for _, seed := range [][2]string{
		{`a(b|cd)*e?`, "abcde"}, {`[a-z]{2,5}x|.*y`, "abxy"}, {`(a?){3}(a|aa){2,}`, "aaaa"},
		{`[^\x00-\x7f]+\d`, "é☃😀7"}, {`((a*)*b)*`, "aabab"}, {`(foo|foobar)(bar|)`, "foobar"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 100 || len(text) > 100 {
			return
		}
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			return
		}
		s := rx.NewSpace(20_000)
		e, ok := build(s, parsed)
		if !ok || s.Err() != nil {
			return
		}
		re, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
		if err != nil {
			return
		}
		for _, r := range text {
			if r == 0xfffd {
				return // package regexp takes what is not UTF-8 for this one
			}
		}
		want := re.MatchString(text)
		if got := matches(s, e, text); s.Err() == nil && got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, text, got, want)
		}
		st, err := rx.NewAutomaton(s, 20_000).Start([]rx.Lexeme{{ID: 1, Set: e}})
		if err != nil {
			return
		}
		for i := 0; st != nil && i < len(text); i++ {
			if st, err = st.Next(text[i]); err != nil {
				return
			}
		}
		if got := st != nil && st.Accept() != nil; got != want {
			t.Fatalf("the automaton of %q takes %q: %v, want %v", pattern, text, got, want)
		}
	})
}
