package main

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text string
		want string // complete lines, then the rest, with / between
	}{
		{"", ""},
		{"one", "one"},
		{"one\n", "one/"},
		{"one two", "one two"},
		{"one two three", "one two/three"},
		{"one two  three", "one two /three"},
		{"abcdefghijklm", "abcdefgh/ijklm"},
		{"ab cdefghijklm", "ab/cdefghij/klm"},
		{"\n\na", "//a"},
		{"日本語日本語", "日本語日/本語"},
		{"a\r\nb", "a/b"},
	} {
		complete, rest := wrap(test.text, 8)
		if got := strings.Join(append(complete, rest), "/"); got != test.want {
			t.Errorf("%q becomes %q, want %q", test.text, got, test.want)
		}
	}
}

// Text that comes in pieces is broken as it is in one.
func TestWrapPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SampledFrom([]string{"a", "bb ", " ", "\n", "日", "long words", "x\ny"})).Draw(t, "pieces")
		width := rapid.IntRange(2, 12).Draw(t, "width")
		var lines []string
		rest := ""
		for _, p := range pieces {
			var complete []string
			complete, rest = wrap(rest+p, width)
			lines = append(lines, complete...)
		}
		got := strings.Join(append(lines, rest), "\n")
		complete, rest := wrap(strings.Join(pieces, ""), width)
		if want := strings.Join(append(complete, rest), "\n"); got != want {
			t.Fatalf("in pieces %q, in one %q", got, want)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if ansi.StringWidth(line) > width {
				t.Fatalf("%q is wider than %d", line, width)
			}
		}
	})
}
