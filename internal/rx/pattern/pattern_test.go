package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/rx"
)

func matches(s *rx.Space, e rx.Expr, text string) bool {
	for i := range len(text) {
		e = s.Derive(e, text[i])
	}
	return s.Nullable(e)
}

func TestPatterns(t *testing.T) {
	const e, c = ECMA, Common
	for _, test := range []struct {
		dialect  Dialect
		pattern  string
		yes, not []string
	}{
		{e, `a`, []string{"a", "xay"}, []string{"", "b"}},
		{c, `a`, []string{"a"}, []string{"", "xay", "aa"}},
		{e, `^a|b$`, []string{"a", "ax", "b", "xb"}, []string{"xa", "bx", ""}},
		{e, ``, []string{"", "x"}, nil},
		{c, ``, []string{""}, []string{"x"}},
		{e, `^$`, []string{""}, []string{"\n", "x"}},
		{e, `a^b`, nil, []string{"ab", "a\nb"}},
		{e, `^[^]$`, []string{"x", "\n", "é", "😀"}, []string{"", "xx"}},
		{e, `[]`, nil, []string{"", "x"}},
		{c, `[]a]+`, []string{"]a"}, []string{"b"}},
		{e, `^.$`, []string{"a", "\u0085", "😀"}, []string{"\n", "\r", "\u2028", "ab"}},
		{c, `.`, []string{"a", "\r", "\u2028"}, []string{"\n", "ab"}},
		{c, `(?s).`, []string{"\n"}, nil},
		{e, `^\d\w\s$`, []string{"1a ", "1_\u00a0", "1_\ufeff"}, []string{"٣a ", "1é "}},
		{c, `\d\w\s`, []string{"1a ", "٣é\u2003"}, []string{"aa ", "1- ", "1a\ufeff"}},
		{e, `^\D\W\S$`, []string{"٣é-"}, []string{"1é-"}},
		{e, `^\p{Letter}\p{Lu}\P{L}$`, []string{"éÉ1"}, []string{"11a", "éé1"}},
		{e, `^\p{Script=Greek}\p{sc=Cyrl}\p{Alphabetic}$`, []string{"αжa"}, []string{"aжa"}},
		{e, `^\p{digit}+$`, []string{"42", "৪২"}, []string{"-%#"}},
		{e, `^[\p{L}\-_]+$`, []string{"é-_"}, []string{"1"}},
		{e, `^[^\p{L}]$`, []string{"1"}, []string{"a"}},
		{e, `^\u0041\x42\u{43}\cJ\0$`, []string{"ABC\n\x00"}, []string{"ABC"}},
		{e, `^\uD83D\uDE00$`, []string{"😀"}, nil},
		{e, `^\/\-\@\"$`, []string{`/-@"`}, nil},
		{e, `^{a}]}$`, []string{"{a}]}"}, nil},
		{e, `^a{2,3}$`, []string{"aa", "aaa"}, []string{"a", "aaaa"}},
		{e, `^a{2}b{1,}c{0}$`, []string{"aab", "aabbb"}, []string{"aabc", "ab"}},
		{c, `a{,2}`, []string{"", "aa"}, []string{"aaa"}},
		{e, `^a{x$`, []string{"a{x"}, nil},
		{e, `^(?:a*?b+?c??)$`, []string{"b", "aabbc"}, []string{"a"}},
		{e, `^(?<year>\d{4})-(x)$`, []string{"2024-x"}, []string{"24-x"}},
		{c, `(?P<y>a)(?#not b)c`, []string{"ac"}, nil},
		{e, `^(?!.*foo)[a-z]+$`, []string{"fo", "bar"}, []string{"foo", "xfooy", ""}},
		{e, `^(?=.*[A-Z])(?=.*\d).{3,}$`, []string{"aA1", "1xA"}, []string{"aa1", "A1", "AAA"}},
		{e, `^((?!--).)*$`, []string{"", "a-b", "-"}, []string{"--", "a--b", "a\nb"}},
		{e, `^((?!--)[a-z-])+$`, []string{"a-b", "-"}, []string{"", "--", "a--b"}},
		{e, `^(.(?!x))*$`, []string{"", "a", "xab", "x"}, []string{"ax", "xx"}},
		{e, `^(.(?!xy))*$`, []string{"", "a", "xya", "ax"}, []string{"axy"}},
		{e, `(?<!foo)bar$`, []string{"bar", "xbar"}, []string{"foobar"}},
		{e, `(?<=foo)bar`, []string{"foobar", "xfoobary"}, []string{"bar", "fobar"}},
		{e, `^(?!a)[a-z.]+(?<!\.js)$`, []string{"b.jso", "js", ".j"}, []string{"b.js", "ab"}},
		{e, `^(?:x|y(?<!ay))z$`, []string{"xz", "yz"}, []string{"z"}},
		{e, `^(?:(?!-)[A-Za-z0-9-]{1,63}(?<!-)\.)+[A-Za-z]{2,6}$`, []string{"a.com", "a-b.c.org"}, []string{"-a.com", "a-.com", ".com", "a..com"}},
		{e, `\bfoo\b`, []string{"foo", "a foo-b", "(foo)"}, []string{"foob", "_foo"}},
		{e, `^(\b[A-Z]\w*\s*)+$`, []string{"A", "Ab Cd", "Ab  Cd "}, []string{"ab", "Ab cd", ""}},
		{e, `^\B$`, []string{""}, nil},
		{e, `^(?:[a-z]+(?:,|$))+$`, []string{"a", "ab,c", "a,"}, []string{"", "a,,b", ",a"}},
		{e, `^((^|,)[a-z])+$`, []string{"a", "a,b"}, []string{"ab", ""}},
		{c, `(?m:^a$\n?)+`, []string{"a", "a\na", "a\na\n"}, []string{"aa"}},
		{c, `(?i)straSSe|\w`, []string{"STRASSE", "ſtrasse", "x"}, []string{"strase"}},
		{c, `(?i:a)b`, []string{"Ab", "ab"}, []string{"aB"}},
		{c, `(?i)[^k]`, []string{"a"}, []string{"k", "K", "\u212a"}},
		{c, `(?x) a b # c
			d`, []string{"abd"}, []string{"a b"}},
		{c, `a(?i)b|c`, []string{"aB", "C"}, []string{"Ab"}},
		{c, `[[:alpha:]_]+[[:^digit:]]`, []string{"a_b-"}, []string{"a1"}},
		{c, `\Aab\z`, []string{"ab"}, []string{"ab\n"}},
		{c, `(?a)\d|(?-u:\w)`, []string{"1", "a"}, []string{"٣", "é"}},
		{e, `^[\w-.]+$`, []string{"a-.b"}, []string{"a/b"}},
		{e, `(?=,|$)x?`, []string{"", "x", ","}, nil},
		{e, `^a(?=,|$),?$`, []string{"a", "a,"}, []string{"ab"}},
		{e, `^(a|(?=b).){0,3}$`, []string{"", "a", "b", "abb"}, []string{"c", "abba"}},
		{e, `^\$\{[^}]*}$`, []string{"${x}"}, []string{"${x"}},
	} {
		t.Run(fmt.Sprintf("%d %s", test.dialect, test.pattern), func(t *testing.T) {
			s := rx.NewSpace(100000)
			x, err := Parse(s, test.pattern, Options{Dialect: test.dialect})
			if err != nil {
				t.Fatal(err)
			}
			tree, _ := (&parser{text: test.pattern, o: Options{Dialect: test.dialect}}).parse()
			for i, texts := range [][]string{test.yes, test.not} {
				for _, text := range texts {
					if matches(s, x, text) != (i == 0) {
						t.Errorf("%q: fits = %v", text, i != 0)
					}
					if fits(tree, test.dialect, text) != (i == 0) {
						t.Errorf("%q: the reference says %v", text, i != 0)
					}
				}
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		dialect       Dialect
		pattern, want string
	}{
		{ECMA, `(a)\1`, `pattern "(a)\\1": at byte 3: a back reference \1 is not regular and not supported; write what the group may match again`},
		{ECMA, `(?<a>b)\k<a>`, `pattern "(?<a>b)\\k<a>": at byte 7: a back reference \k<name> is not regular and not supported; write what the group may match again`},
		{Common, `(?P=a)`, `pattern "(?P=a)": at byte 0: a back reference (?P=name) is not regular and not supported`},
		{ECMA, `a(b`, `pattern "a(b": at byte 1: this ( has no ); a ( of the text is written \(`},
		{ECMA, `a)b`, `pattern "a)b": at byte 1: this ) closes no group; a ) of the text is written \)`},
		{ECMA, `*a`, `pattern "*a": at byte 0: nothing stands before this * to repeat; a * of the text is written \*`},
		{ECMA, `a**`, `pattern "a**": at byte 2: a quantifier follows another; put a group (?:...) around what the first repeats`},
		{Common, `a*+`, `pattern "a*+": at byte 1: a quantifier that gives nothing back (as in a*+) is not supported; leave the last + away if the texts are the same`},
		{ECMA, `^*`, `pattern "^*": at byte 1: what stands before this quantifier matches no text and cannot be repeated`},
		{ECMA, `[b-a]`, `pattern "[b-a]": at byte 1: the range b-a goes backwards`},
		{ECMA, `[a`, `pattern "[a": at byte 0: this [ has no ]; a [ of the text is written \[`},
		{ECMA, `\Z`, `pattern "\\Z": at byte 0: the escape \Z is not known; write ^ for the beginning of the text and $ for its end`},
		{ECMA, `\a`, `pattern "\\a": at byte 0: the escape \a is not known; a letter of the text stands without a backslash`},
		{ECMA, `a{3,2}`, `pattern "a{3,2}": at byte 1: the minimum 3 is above the maximum 2`},
		{ECMA, `a{,2}`, `pattern "a{,2}": at byte 1: ECMA-262 has no count without a minimum; write {0,2}`},
		{ECMA, `a{1,99999999999}`, `pattern "a{1,99999999999}": at byte 1: a count is above 16777216`},
		{ECMA, `\p{Foo}`, `pattern "\\p{Foo}": at byte 0: the Unicode property "Foo" is not known; general categories (\p{Lu}), scripts (\p{Script=Greek}) and binary properties such as \p{Alphabetic} are`},
		{ECMA, `\u12`, `pattern "\\u12": at byte 0: this escape needs 4 hexadecimal digits, of a code point up to 10FFFF`},
		{ECMA, `[[:alpha:]]`, `pattern "[[:alpha:]]": at byte 1: ECMA-262 has no class [:alpha:]; write its characters`},
		{Common, `[a&&b]`, `pattern "[a&&b]": at byte 2: && in a class is an operation in Rust and two characters in Python and RE2; put a backslash before each of them if they are characters`},
		{Common, `[\w-.]`, `pattern "[\\w-.]": at byte 1: a range cannot begin or end with a class such as \d; a hyphen of the text is written \-`},
		{Common, `(?>a)`, `pattern "(?>a)": at byte 0: an atomic group (?>...) is not supported; write (?:...) if the texts are the same`},
		{Common, `(?y)`, `pattern "(?y)": at byte 0: (?y is not known; (?:...), (?=...), (?!...), (?<=...), (?<!...), (?<name>...) and the flags i, m, s and x are`},
		{Common, "a\xff", `pattern "a\xff": at byte 1: the pattern is not valid UTF-8`},
		{ECMA, `(?:(?!ab)[a-z]*)*c`, `pattern "(?:(?!ab)[a-z]*)*c": at byte 3: a lookahead of more than one character works in a repetition only beside a single character, as in ((?!--).)*; put it before the repetition`},
		{ECMA, `^((?!ab).)*c`, `pattern "^((?!ab).)*c": at byte 2: what follows this repetition may begin as another round of it, and then its lookahead is not supported; put the lookahead before the repetition`},
		{ECMA, `((?<=ab)c)*d`, `pattern "((?<=ab)c)*d": at byte 1: a lookbehind of more than one character works only outside of repetitions and lookaheads; write it with one character, or as a lookahead`},
		{ECMA, strings.Repeat("(", 300), `pattern "` + strings.Repeat("(", 80) + `"...: at byte 200: groups are nested deeper than 200`},
	} {
		_, err := Parse(rx.NewSpace(10000), test.pattern, Options{Dialect: test.dialect})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.pattern, got, test.want)
		}
	}
}

func TestLarge(t *testing.T) {
	for _, p := range []string{
		`^(?:\b\w{1,500}\b\s){1,10000000}$`,
		`^((a{1,1000}){1,1000}){1,1000}$`,
		`^(?:(?=a)(?:b(?=c)){0,10000}){0,10000}$`,
		strings.Repeat(`(?=\w)`, 1000),
		strings.Repeat(`a?`, 5000) + strings.Repeat(`a`, 5000),
		strings.Repeat(`(a|`, 150) + strings.Repeat(`)`, 150),
	} {
		_, err := Parse(rx.NewSpace(20000), p, Options{})
		var bad *Error
		if err != nil && !errors.Is(err, rx.ErrTooLarge) && !errors.As(err, &bad) {
			t.Errorf("%.40s: %v", p, err)
		}
	}
}

// A character may have several spellings.
func TestRune(t *testing.T) {
	s := rx.NewSpace(100000)
	spelled := func(ranges []rx.RuneRange) rx.Expr {
		var all []rx.Expr
		for _, r := range ranges {
			for c := r.Lo; c <= min(r.Hi, 0x7f); c++ {
				all = append(all, s.Literal(fmt.Sprintf(`\%02x`, c)))
				if c != '\\' {
					all = append(all, s.Literal(string(c)))
				}
			}
		}
		return s.Or(all...)
	}
	e, err := Parse(s, `^(?!.*foo)(\b[a-f1]+\b-?)+$`, Options{Rune: spelled})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{`ab`: true, `a\62`: true, `\61\62-c`: true, `1`: true, `\31`: true, `a-\`: false, `a\6`: false, `a\67`: false, `a--b`: false} {
		if matches(s, e, text) != want {
			t.Errorf("%s: fits = %v", text, !want)
		}
	}
}

// patterns generates patterns over the characters of texts.
func patterns(look bool) *rapid.Generator[string] {
	atoms := []string{"a", "b", "-", "1", "é", ".", `\w`, `\d`, `\s`, "[ab]", "[^a-]", "[^b]", `\n`, "^", "$", `\b`, `\B`, ""}
	if look {
		atoms = append(atoms, "(?=a)", "(?!b)", "(?<=a)", "(?<!-)", "(?=b|$)", "(?<=^|-)")
	}
	var gen func(depth int) *rapid.Generator[string]
	gen = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			kinds := 6
			if look {
				kinds = 10
			}
			if depth == 0 {
				kinds = 1
			}
			sub := func() string { return gen(depth-1).Draw(t, "sub") }
			switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
			case 1, 2:
				return sub() + sub()
			case 3:
				return "(?:" + sub() + "|" + sub() + ")"
			case 4, 5:
				return "(?:" + sub() + ")" + rapid.SampledFrom([]string{"*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?"}).Draw(t, "count")
			case 6:
				return "(?=" + sub() + ")"
			case 7:
				return "(?!" + sub() + ")"
			case 8:
				return "(?<=" + sub() + ")"
			case 9:
				return "(?<!" + sub() + ")"
			}
			return rapid.SampledFrom(atoms).Draw(t, "atom")
		})
	}
	return gen(4)
}

var texts = rapid.StringOfN(rapid.SampledFrom([]rune("aab1- \né")), 0, 6, -1)

func TestAgainstGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom([]string{"", "(?m)", "(?i)", "(?s)"}).Draw(t, "flags") + patterns(false).Draw(t, "pattern")
		re, err := regexp.Compile(`\A(?:` + p + `)\z`)
		if err != nil {
			t.Skip()
		}
		s := rx.NewSpace(1000000)
		e, err := Parse(s, p, Options{Dialect: Common, ASCII: true})
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		for range 8 {
			text := texts.Draw(t, "text")
			if got, want := matches(s, e, text), re.MatchString(text); got != want {
				t.Fatalf("%s %q: fits = %v", p, text, got)
			}
		}
	})
}

func TestAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]Dialect{ECMA, Common}).Draw(t, "dialect")
		p := patterns(true).Draw(t, "pattern")
		tree, err := (&parser{text: p, o: Options{Dialect: d}}).parse()
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		s := rx.NewSpace(1000000)
		e, err := Parse(s, p, Options{Dialect: d})
		if err != nil {
			t.Skip(err)
		}
		for range 8 {
			text := texts.Draw(t, "text")
			if got, want := matches(s, e, text), fits(tree, d, text); got != want {
				t.Fatalf("%s %q: fits = %v", p, text, got)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, p := range []string{`^a|b$`, `(?!.*foo)[a-z]+`, `\p{L}{2,}\b`, `(?i)[^k-m]`, `(?<!ab)c`, `((?!--).)*$`, `[[:alpha:]\d]`, `(?m:^a$\n?)+`} {
		f.Add(p, "foo bar", true)
	}
	f.Fuzz(func(t *testing.T, p, text string, ecma bool) {
		if len(p) > 60 || len(text) > 12 {
			t.Skip()
		}
		d := Common
		if ecma {
			d = ECMA
		}
		s := rx.NewSpace(20000)
		e, err := Parse(s, p, Options{Dialect: d})
		if err != nil {
			return
		}
		text = strings.ToValidUTF8(text, "?")
		got := matches(s, e, text)
		if s.Err() != nil {
			return
		}
		tree, _ := (&parser{text: p, o: Options{Dialect: d}}).parse()
		if got != fits(tree, d, text) {
			t.Fatalf("%q %q: fits = %v", p, text, got)
		}
	})
}
