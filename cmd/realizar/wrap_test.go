package main

import (
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text string
		want string // complete lines, then the rest, separated by /
	}{
		{"", ""},
		{"one", "one"},
		{"one\n", "one/"},
		{"one two", "one two"},
		{"one two three", "one two/three"},
		{"one two  three", "one two/three"},
		{"one two   ", "one two   "},
		{"abcdefghijklm", "abcdefgh/ijklm"},
		{"ab cdefghijklm", "ab/cdefghij/klm"},
		{"  ab\n  cd", "  ab/  cd"},
		{"\n\na", "//a"},
		{"日本語日本語", "日本語日/本語"},
		{"abcdefg - b", "abcdefg /-/b"}, // ansi.Wrap alone would make a line of nine columns
	} {
		complete, rest := wrap(test.text, 8)
		if got := strings.Join(append(complete, rest), "/"); got != test.want {
			t.Errorf("%q becomes %q, want %q", test.text, got, test.want)
		}
	}
}

// TestWrapPieces checks that text in pieces is broken into lines that fit, that only spaces at line
// ends are lost, and that words are not joined.
func TestWrapPieces(t *testing.T) {
	alphabet := rapid.SliceOf(rapid.SampledFrom([]string{
		"a", "bb ", " ", "  ", "\n", "日", "\u3000", "\u00a0", "e\u0301", "👩‍👩‍👧", "🇩", "-", "--", "- b", "long words", "x\ny",
	}))
	rapid.Check(t, func(t *rapid.T) {
		pieces := alphabet.Draw(t, "pieces")
		width := rapid.IntRange(2, 12).Draw(t, "width")
		var lines []string
		rest := ""
		for _, p := range pieces {
			var complete []string
			complete, rest = wrap(rest+p, width)
			lines = append(lines, complete...)
		}
		lines = append(lines, trimmed(rest))
		for _, line := range lines {
			if ansi.StringWidth(trimmed(line)) > width {
				t.Fatalf("%q is wider than %d", line, width)
			}
		}
		got, at := []rune(strings.Join(lines, "\n")), 0
		skip := func() (skipped bool) {
			for ; at < len(got) && unicode.IsSpace(got[at]); at++ {
				skipped = true
			}
			return skipped
		}
		begun := false
		for word := range strings.FieldsSeq(strings.Join(pieces, "")) {
			if !skip() && begun {
				t.Fatalf("%q was joined in %q", word, lines)
			}
			begun = true
			for _, r := range word {
				skip() // a word longer than a line is broken
				if at == len(got) || got[at] != r {
					t.Fatalf("%q is not whole in %q", word, lines)
				}
				at++
			}
		}
		if skip(); at < len(got) {
			t.Fatalf("%q was added to %q", string(got[at:]), pieces)
		}
	})
}
