package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

func newEditor(text string) *editor {
	e := new(editor)
	e.insert(text)
	return e
}

// with shows the cursor as |.
func with(e *editor) string {
	return strings.Join(e.chars[:e.at], "") + "|" + strings.Join(e.chars[e.at:], "")
}

func TestEditor(t *testing.T) {
	for _, test := range []struct {
		name, text string
		do         func(e *editor)
		want       string
	}{
		{"type", "ab", func(e *editor) { e.insert("c") }, "abc|"},
		{"line feeds of other systems", "a\r\nb\rc", func(*editor) {}, "a\nb\nc|"},
		{"what steers the terminal", "a\x1b[31mb\u009b", func(*editor) {}, "a[31mb|"},
		{"left", "añb", func(e *editor) { e.at = e.left(); e.at = e.left(); e.insert("x") }, "ax|ñb"},
		{"one character of many", "x👩‍👩‍👧", func(e *editor) { e.delete(e.left()) }, "x|"},
		{"joins the one before", "e", func(e *editor) { e.insert("\u0301"); e.insert("!"); e.at = e.left(); e.delete(e.left()) }, "|!"},
		{"word", "one two  ", func(e *editor) { e.delete(e.wordLeft()) }, "one |"},
		{"words", "one two", func(e *editor) { e.at = e.wordLeft(); e.at = e.wordLeft(); e.at = e.wordRight() }, "one| two"},
		{"line", "one\ntwo", func(e *editor) { e.delete(e.lineStart()) }, "one\n|"},
		{"line ends", "one\ntwo", func(e *editor) { e.at = 1; e.delete(e.lineEnd()) }, "o|\ntwo"},
		{"up", "one\ntwo", func(e *editor) { e.at, _ = e.vertical(-1, 80) }, "one|\ntwo"},
		{"up to a shorter line", "o\ntwo", func(e *editor) { e.at, _ = e.vertical(-1, 80) }, "o|\ntwo"},
		{"up in a long line", "abcdef", func(e *editor) { e.at, _ = e.vertical(-1, 4) }, "ab|cdef"},
		{"nothing above", "one", func(e *editor) { e.at, _ = e.vertical(-1, 80) }, "one|"},
		{"delete at the ends", "", func(e *editor) { e.delete(e.left()); e.delete(e.right()) }, "|"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEditor(test.text)
			test.do(e)
			if got := with(e); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestEditorView(t *testing.T) {
	e := newEditor("one\nlonger\n")
	lines, row, column := e.view(4, 10)
	if got := strings.Join(lines, "/"); got != "one/long/er/" || row != 3 || column != 0 {
		t.Errorf("got %q, cursor at %d, %d", got, row, column)
	}
	lines, row, column = newEditor("abcd").view(4, 10)
	if got := strings.Join(lines, "/"); got != "abcd/" || row != 1 || column != 0 {
		t.Errorf("a full row: got %q, cursor at %d, %d, want it below", got, row, column)
	}
	lines, row, _ = newEditor("1\n2\n3\n4\n5").view(4, 2)
	if got := strings.Join(lines, "/"); got != "4/5" || row != 1 {
		t.Errorf("at the end of a long text: got %q, cursor in row %d", got, row)
	}
}

// Whatever is done, the rows are the text, fit the width, and hold the cursor.
func TestEditorProperties(t *testing.T) {
	pieces := rapid.SliceOf(rapid.SampledFrom([]string{"a", " ", "\n", "日", "e", "\u0301", "👩", "\u200d", "🇩", "word "}))
	rapid.Check(t, func(t *rapid.T) {
		e := new(editor)
		width := rapid.IntRange(2, 9).Draw(t, "width")
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1, 2:
				e.insert(strings.Join(pieces.Draw(t, "text"), ""))
			case 3:
				e.at = rapid.IntRange(0, len(e.chars)).Draw(t, "at")
			case 4:
				e.delete(e.wordLeft())
			case 5:
				e.at, _ = e.vertical(rapid.SampledFrom([]int{-1, 1}).Draw(t, "by"), width)
			case 6:
				e.delete(e.right())
			}
			if e.at < 0 || e.at > len(e.chars) {
				t.Fatalf("the cursor stands at %d of %d characters", e.at, len(e.chars))
			}
			lines, row, column := e.view(width, 1000)
			if got, want := strings.Join(lines, ""), strings.ReplaceAll(e.text(), "\n", ""); got != want {
				t.Fatalf("rows %q are not the text %q", lines, e.text())
			}
			if row < 0 || row >= len(lines) || column < 0 || column > width {
				t.Fatalf("the cursor is shown at %d, %d of %q", row, column, lines)
			}
			for _, l := range lines {
				if ansi.StringWidth(l) > width && utf8.RuneCountInString(l) > 1 && len(clusters(l)) > 1 {
					t.Fatalf("row %q is wider than %d", l, width)
				}
			}
		}
	})
}
