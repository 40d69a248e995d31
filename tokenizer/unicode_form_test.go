package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

var forms = map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}

// TestUnicodeForms compares with package norm where the two must agree: for characters of Unicode
// 9.0, with few marks in a row.
func TestUnicodeForms(t *testing.T) {
	alphabet := []rune("aeoA é\u0301\u0323\u0307\u0344\u0f71\u0f72\u1100\u1161\u11a8가각ﬁÅ\u212bẛ\u09c7\u09be世\u3099か")
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.OneOf(rapid.SampledFrom(alphabet), rapid.Rune().Filter(func(r rune) bool {
			return unicode.Is(unicode9, r) && !unicode.Is(unicode.Cs, r)
		}))
		text := string(rapid.SliceOfN(draw, 0, 25).Draw(t, "text"))
		for name, form := range forms {
			got, marks := unicodeForm(form).apply(nil, text, make([]bool, len(text)))
			if want := form.String(text); got != want {
				t.Errorf("%s of %+q: got %+q, want %+q", name, text, got, want)
			}
			if len(marks) != len(got) {
				t.Errorf("%s of %+q: %d marks for %d bytes", name, text, len(marks), len(got))
			}
		}
	})
}

func TestUnicodeFormsBeyondNorm(t *testing.T) {
	marks := strings.Repeat("\u0301", 100)
	tests := []struct{ name, text, want string }{
		{"many marks stay together", "e\u0323" + marks, "ẹ" + marks},
		{"many marks are ordered", marks + "\u0323", "\u0323" + marks},
		{"a newer mark does not move", "a\u0897\u0323\u0301", "a\u0897\u0323\u0301"},
		{"and is in the way", "e\U0001E6E3\u0301e\u0301", "e\U0001E6E3\u0301é"},
		{"invalid bytes stay", "e\u0301\xff\u0301\xc3", "é\xff\u0301\xc3"},
	}
	for _, test := range tests {
		if got, _ := unicodeForm(norm.NFC).apply(nil, test.text, nil); got != test.want {
			t.Errorf("%s: got %+q, want %+q", test.name, got, test.want)
		}
	}
}

// TestMarksFollow checks that a mark stays with what its character becomes.
func TestMarksFollow(t *testing.T) {
	tests := []struct {
		name         string
		n            normalizer
		text, typed  string // x is a marked byte
		want, marked string
	}{
		{"compose", normalizer{unicodeForm(norm.NFC)}, "ae\u0301b", "..xx.", "aéb", ".xx."},
		{"prepend", normalizer{prepend("__")}, "ab", "x.", "__ab", "xxx."},
		{"replace", normalizer{replace{literal("bc"), "-"}}, "abcdbc", "..x...", "a-d-", ".x.."},
		{"strip", normalizer{strip{true, true}}, "  a b ", "x.x..x", "a b", "x.."},
		{"lower case", normalizer{lowercase{}}, "AİB", ".xx.", "ai\u0307b", ".xxx."},
	}
	for _, test := range tests {
		marks := make([]bool, len(test.text))
		for i := range marks {
			marks[i] = test.typed[i] == 'x'
		}
		got, marks := test.n.apply(nil, test.text, marks)
		var marked strings.Builder
		for _, m := range marks {
			marked.WriteByte(".x"[map[bool]int{true: 1}[m]])
		}
		if got != test.want || marked.String() != test.marked {
			t.Errorf("%s: got %q %s, want %q %s", test.name, got, marked.String(), test.want, test.marked)
		}
		if alone, _ := test.n.apply(nil, test.text, nil); alone != test.want {
			t.Errorf("%s without marks: got %q, want %q", test.name, alone, test.want)
		}
	}
}

// TestFormInParts checks that a text that is normalized in parts gives the same result as a whole.
func TestFormInParts(t *testing.T) {
	chars := []string{"a", "e", "\u0301", "\u0323", "\u1100", "\u1161", "\u11a8", "\uac00", "か", "\u3099", "\u0344", "\u0f71", "\u0f74", "ﾞ", "ﾊ", "世", "\xff", "\xe4\xb8", "\u09c7", "\u09be", "𝟙", "ﷺ", "\U0001e8d0", "\u1dfb"}
	g := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		var b strings.Builder
		for range g.IntN(40) {
			b.WriteString(chars[g.IntN(len(chars))])
		}
		text := b.String()
		marks := make([]bool, len(text))
		for i := range marks {
			marks[i] = g.IntN(2) == 0
		}
		for _, form := range []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD} {
			want, wantMarks := unicodeForm(form).inParts(nil, text, marks, len(text))
			if got, gotMarks := unicodeForm(form).inParts(nil, text, marks, 1+g.IntN(8)); got != want || !slices.Equal(gotMarks, wantMarks) {
				t.Fatalf("form %d of %+q: %+q, want %+q", form, text, got, want)
			}
		}
	}
}
