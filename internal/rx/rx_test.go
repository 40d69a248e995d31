package rx_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/rx"
)

// matches reports whether text is in e.
func matches(s *rx.Space, e rx.Expr, text string) bool {
	for i := range len(text) {
		e = s.Derive(e, text[i])
	}
	return s.Nullable(e)
}

// contains is the strings with text in them.
func contains(s *rx.Space, text string) rx.Expr {
	return s.Concat(rx.Anything, s.Literal(text), rx.Anything)
}

func TestMatch(t *testing.T) {
	s := rx.NewSpace(100_000)
	a, b := s.Literal("a"), s.Literal("b")
	any := s.Bytes(rx.AllBytes)
	for _, test := range []struct {
		name    string
		e       rx.Expr
		yes, no []string
	}{
		{"nothing", rx.Nothing, nil, []string{"", "a"}},
		{"empty", rx.Empty, []string{""}, []string{"a"}},
		{"anything", rx.Anything, []string{"", "a", "\xff\x00"}, nil},
		{"literal", s.Literal("abc"), []string{"abc"}, []string{"", "ab", "abcd", "abd"}},
		{"or", s.Or(s.Literal("ab"), s.Literal("ac"), rx.Empty), []string{"", "ab", "ac"}, []string{"a", "b"}},
		{"star", s.Repeat(s.Or(a, s.Literal("bb")), 0, -1), []string{"", "a", "bb", "abba"}, []string{"b", "ab"}},
		{"counted", s.Repeat(s.Or(a, s.Literal("aa")), 2, 3), []string{"aa", "aaa", "aaaaaa"}, []string{"", "a", "aaaaaaa"}},
		{"huge", s.Repeat(any, 3, 1_000_000), []string{"abc", "abcd"}, []string{"ab"}},
		{"and", s.And(contains(s, "ab"), contains(s, "ba")), []string{"aba", "bab", "abba"}, []string{"ab", "ba", ""}},
		{"not", s.And(s.Repeat(any, 1, -1), s.Not(contains(s, "<e>"))), []string{"a", "<e", "<<ee>"}, []string{"", "<e>", "x<e>y"}},
		{"both", s.And(s.Repeat(a, 0, -1), s.Not(s.Repeat(s.Repeat(a, 2, 2), 0, -1))), []string{"a", "aaa"}, []string{"", "aa", "b"}},
		{"runes", s.Runes(rx.RuneRange{Lo: 'é', Hi: '☃'}), []string{"é", "☃", "\u0fff"}, []string{"e", "\u2604", "\xc3", "😀"}},
		{"after", s.Concat(s.Repeat(a, 0, 2), a, b), []string{"ab", "aaab"}, []string{"b", "aaaab"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, text := range test.yes {
				if !matches(s, test.e, text) {
					t.Errorf("%q is not in it", text)
				}
			}
			for _, text := range test.no {
				if matches(s, test.e, text) {
					t.Errorf("%q is in it", text)
				}
			}
		})
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestEqualStructure(t *testing.T) {
	s := rx.NewSpace(100_000)
	a, b, c := s.Literal("a"), s.Literal("b"), s.Literal("c")
	x := s.Concat(a, b)
	for _, test := range []struct {
		name string
		a, b rx.Expr
	}{
		{"order", s.Or(x, c), s.Or(c, x, rx.Nothing)},
		{"flat", s.Or(x, s.Or(c, rx.Empty)), s.Or(c, x, rx.Empty)},
		{"bytes", s.Or(a, b), s.Bytes(rx.BytesOf('a', 'b'))},
		{"tails", s.Or(s.Literal("ax"), s.Literal("bx")), s.Concat(s.Bytes(rx.BytesOf('a', 'b')), s.Literal("x"))},
		{"counts", s.Or(s.Repeat(x, 1, 4), s.Repeat(x, 3, 9)), s.Repeat(x, 1, 9)},
		{"counts and empty", s.Or(s.Repeat(x, 1, 4), rx.Empty), s.Repeat(x, 0, 4)},
		{"sum", s.Concat(s.Repeat(a, 1, 4), s.Repeat(a, 2, -1), a), s.Repeat(a, 4, -1)},
		{"star of star", s.Repeat(s.Repeat(x, 0, -1), 1, 7), s.Repeat(x, 0, -1)},
		{"not not", s.Not(s.Not(x)), x},
		{"x or not x", s.Or(x, s.Not(x)), rx.Anything},
		{"x and not x", s.And(x, s.Not(x)), rx.Nothing},
		{"meet", s.And(s.Concat(s.Bytes(rx.ByteRange('a', 'c')), b), s.Concat(s.Bytes(rx.ByteRange('b', 'z')), s.Or(b, c))), s.Concat(s.Bytes(rx.ByteRange('b', 'c')), b)},
		{"any bytes", s.Repeat(s.Bytes(rx.AllBytes), 0, -1), rx.Anything},
		{"associative", s.Concat(s.Concat(a, b), c), s.Concat(a, s.Concat(b, c))},
	} {
		if test.a != test.b {
			t.Errorf("%s: %d, want %d", test.name, test.a, test.b)
		}
	}
}

// A tree is an expression twice: in a space, and as a matcher that tries everything.
type tree struct {
	build func(s *rx.Space) rx.Expr
	match func(text string) bool
	text  string
	re    string // in Go's notation; empty where it has none
}

func anyTree(depth int) *rapid.Generator[tree] {
	return rapid.Custom(func(t *rapid.T) tree {
		kinds := 2
		if depth > 0 {
			kinds = 8
		}
		switch kind := rapid.IntRange(0, kinds).Draw(t, "kind"); kind {
		case 0:
			text := rapid.StringMatching(`[abc]{0,3}`).Draw(t, "literal")
			return tree{func(s *rx.Space) rx.Expr { return s.Literal(text) }, func(x string) bool { return x == text }, fmt.Sprintf("%q", text), "(?:" + text + ")"}
		case 1, 2:
			set := rapid.SliceOfN(rapid.SampledFrom([]byte("abc")), 1, 2).Draw(t, "set")
			return tree{
				func(s *rx.Space) rx.Expr { return s.Bytes(rx.BytesOf(set...)) },
				func(x string) bool { return len(x) == 1 && slices.Contains(set, x[0]) },
				fmt.Sprintf("[%s]", set), fmt.Sprintf("[%s]", set),
			}
		case 3, 4:
			l, r := anyTree(depth-1).Draw(t, "l"), anyTree(depth-1).Draw(t, "r")
			re := ""
			if l.re != "" && r.re != "" {
				re = "(?:" + l.re + r.re + ")"
			}
			return tree{
				func(s *rx.Space) rx.Expr { return s.Concat(l.build(s), r.build(s)) },
				func(x string) bool {
					for i := range len(x) + 1 {
						if l.match(x[:i]) && r.match(x[i:]) {
							return true
						}
					}
					return false
				},
				l.text + " " + r.text, re,
			}
		case 5, 6:
			parts := rapid.SliceOfN(anyTree(depth-1), 2, 3).Draw(t, "parts")
			and := kind == 6
			text, re, sep := make([]string, len(parts)), make([]string, len(parts)), "|"
			known := !and
			for i, p := range parts {
				text[i], re[i] = p.text, p.re
				known = known && p.re != ""
			}
			if and {
				sep = "&"
			}
			tr := tree{
				func(s *rx.Space) rx.Expr {
					es := make([]rx.Expr, len(parts))
					for i, p := range parts {
						es[i] = p.build(s)
					}
					if and {
						return s.And(es...)
					}
					return s.Or(es...)
				},
				func(x string) bool {
					for _, p := range parts {
						if p.match(x) != and {
							return !and
						}
					}
					return and
				},
				"(" + strings.Join(text, sep) + ")", "",
			}
			if known {
				tr.re = "(?:" + strings.Join(re, "|") + ")"
			}
			return tr
		case 7:
			of := anyTree(depth-1).Draw(t, "of")
			return tree{func(s *rx.Space) rx.Expr { return s.Not(of.build(s)) }, func(x string) bool { return !of.match(x) }, "~" + of.text, ""}
		default:
			of := anyTree(depth-1).Draw(t, "of")
			lo := rapid.IntRange(0, 3).Draw(t, "min")
			hi := rapid.IntRange(-1, 4).Draw(t, "max")
			tr := tree{
				func(s *rx.Space) rx.Expr { return s.Repeat(of.build(s), lo, hi) },
				func(x string) bool { return repeats(of, x, lo, hi) },
				fmt.Sprintf("(%s){%d,%d}", of.text, lo, hi), "",
			}
			if of.re != "" && (hi < 0 || hi >= lo) {
				tr.re = fmt.Sprintf("(?:%s){%d,%d}", of.re, lo, hi)
				if hi < 0 {
					tr.re = fmt.Sprintf("(?:%s){%d,}", of.re, lo)
				}
			}
			return tr
		}
	})
}

func repeats(of tree, x string, lo, hi int) bool {
	if hi >= 0 && lo > hi {
		return false
	}
	if lo <= 0 && x == "" {
		return true
	}
	if hi == 0 {
		return false
	}
	if x == "" {
		return of.match("")
	}
	if lo > 0 && of.match("") && repeats(of, x, 0, hi) {
		return true
	}
	for i := 1; i <= len(x); i++ {
		if of.match(x[:i]) && repeats(of, x[i:], lo-1, max(hi-1, -1)) {
			return true
		}
	}
	return false
}

var texts = rapid.StringMatching(`[abcd]{0,6}`)

func TestAgreesWithNaiveMatcher(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := anyTree(3).Draw(t, "tree")
		s := rx.NewSpace(1_000_000)
		e := tr.build(s)
		var re *regexp.Regexp
		if tr.re != "" {
			re = regexp.MustCompile(`\A` + tr.re + `\z`)
		}
		for range 12 {
			text := texts.Draw(t, "text")
			got, want := matches(s, e, text), tr.match(text)
			if got != want {
				t.Fatalf("%s matches %q: %v, want %v", tr.text, text, got, want)
			}
			if re != nil && re.MatchString(text) != got {
				t.Fatalf("%s matches %q: %v, unlike %s", tr.text, text, got, re)
			}
		}
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
	})
}

// allTexts is every string of the alphabet up to that length.
func allTexts(alphabet string, length int) []string {
	all := []string{""}
	for from := 0; length > 0; length-- {
		end := len(all)
		for _, text := range all[from:end] {
			for i := range len(alphabet) {
				all = append(all, text+alphabet[i:i+1])
			}
		}
		from = end
	}
	slices.Sort(all)
	return all
}

func TestEmptyAndList(t *testing.T) {
	short := allTexts("abcd", 5)
	rapid.Check(t, func(t *rapid.T) {
		tr := anyTree(2).Draw(t, "tree")
		s := rx.NewSpace(1_000_000)
		e := tr.build(s)
		var want []string
		for _, text := range short {
			if tr.match(text) {
				want = append(want, text)
			}
		}
		if len(want) > 0 && s.IsEmpty(e) {
			t.Fatalf("%s is empty; it has %q", tr.text, want[0])
		}
		if got, ok := s.List(e, 1000); ok {
			if s.IsEmpty(e) != (len(got) == 0) {
				t.Fatalf("%s: IsEmpty is %v of %q", tr.text, s.IsEmpty(e), got)
			}
			got = slices.DeleteFunc(got, func(text string) bool { return len(text) > 5 })
			if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
				t.Fatalf("%s: %s", tr.text, diff)
			}
		}
		// An expression is empty just where it meets everything in nothing.
		if other := s.And(e, s.Not(e)); !s.IsEmpty(other) {
			t.Fatalf("%s: it and its complement share strings", tr.text)
		}
	})
}

func TestRunesAreUTF8(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edges := []rune{-1, 0, 'a', 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xd800, 0xdfff, 0xe000, 0xffff, 0x10000, 0x10ffff, 0x110000}
		lo := rapid.OneOf(rapid.SampledFrom(edges), rapid.Rune()).Draw(t, "lo")
		hi := rapid.OneOf(rapid.SampledFrom(edges), rapid.Rune()).Draw(t, "hi")
		s := rx.NewSpace(10_000)
		e := s.Runes(rx.RuneRange{Lo: lo, Hi: hi})
		for range 30 {
			r := rapid.OneOf(rapid.SampledFrom(append(edges, lo, hi, lo-1, hi+1)), rapid.Rune()).Draw(t, "rune")
			if !utf8.ValidRune(r) {
				continue
			}
			if got, want := matches(s, e, string(r)), lo <= r && r <= hi; got != want {
				t.Fatalf("%U to %U has %U: %v", lo, hi, r, got)
			}
		}
		for range 10 {
			text := string(rapid.SliceOfN(rapid.Byte(), 1, 4).Draw(t, "bytes"))
			if matches(s, e, text) && (!utf8.ValidString(text) || utf8.RuneCountInString(text) != 1) {
				t.Fatalf("%q is no rune", text)
			}
		}
	})
}

func TestLimits(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(s *rx.Space) rx.Expr
		err  bool
	}{
		{"a million times", func(s *rx.Space) rx.Expr { return s.Repeat(s.Literal("abc"), 1_000_000, 2_000_000) }, false},
		{"far away", func(s *rx.Space) rx.Expr {
			return s.And(s.Repeat(s.Literal("a"), 1_000_000, -1), s.Not(contains(s, "b")))
		}, true},
		{"counters", func(s *rx.Space) rx.Expr {
			any := s.Bytes(rx.AllBytes)
			e := rx.Anything
			for _, b := range []byte("abcdefghij") {
				e = s.And(e, s.Concat(rx.Anything, s.Bytes(rx.BytesOf(b)), s.Repeat(any, 1000, 1000)))
			}
			return e
		}, true},
		{"nested", func(s *rx.Space) rx.Expr {
			e := s.Literal("a")
			for range 10_000 {
				e = s.Not(s.Concat(e, s.Literal("b")))
			}
			return e
		}, true},
		{"long literals", func(s *rx.Space) rx.Expr {
			long := strings.Repeat("x", 40_000)
			return s.Or(s.Literal(long+"a"), s.Literal(long+"b"))
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := rx.NewSpace(200_000)
			e := test.make(s)
			if isEmpty := s.IsEmpty(e); isEmpty && s.Err() == nil {
				t.Error("it is empty")
			}
			if err := s.Err(); (err != nil) != test.err {
				t.Errorf("error %v", err)
			}
		})
	}
}

// multiple is the decimal numbers that a number divides, as a Leaf.
type multiple struct {
	of, rest int
	begun    bool
}

func (m multiple) Next(b byte) rx.Leaf {
	if b < '0' || b > '9' {
		return nil
	}
	return multiple{m.of, (m.rest*10 + int(b-'0')) % m.of, true}
}

func (m multiple) Accepts() bool { return m.begun && m.rest == 0 }

func TestLeaf(t *testing.T) {
	s := rx.NewSpace(10_000)
	e := s.Concat(s.Literal("="), s.Leaf(multiple{of: 7}), s.Literal(";"))
	for n := range 100 {
		if got, want := matches(s, e, fmt.Sprintf("=%d;", n)), n%7 == 0; got != want {
			t.Errorf("%d: %v", n, got)
		}
	}
}
