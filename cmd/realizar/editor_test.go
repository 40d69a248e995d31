package main

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

func edited(t *testing.T, width, height int, text string) *editor {
	t.Helper()
	e := newEditor()
	e.resize(width, height)
	if err := e.insert(text); err != nil {
		t.Fatal(err)
	}
	return &e
}

// with returns the text of e with | at the cursor.
func with(e *editor) string {
	lines := strings.Split(e.Value(), "\n")
	line := []rune(lines[e.Line()])
	lines[e.Line()] = string(slices.Insert(line, e.Column(), '|'))
	return strings.Join(lines, "\n")
}

// keyNamed returns a key by its name, without the text that it types.
func keyNamed(name string) tea.KeyPressMsg {
	var k tea.KeyPressMsg
	parts := strings.Split(name, "+")
	name = parts[len(parts)-1]
	for _, mod := range parts[:len(parts)-1] {
		k.Mod |= map[string]tea.KeyMod{"ctrl": tea.ModCtrl, "alt": tea.ModAlt, "shift": tea.ModShift}[mod]
	}
	special := map[string]rune{
		"enter": tea.KeyEnter, "backspace": tea.KeyBackspace, "delete": tea.KeyDelete, "home": tea.KeyHome, "end": tea.KeyEnd,
		"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
	}
	if code, ok := special[name]; ok {
		k.Code = code
	} else {
		k.Code, _ = utf8.DecodeRuneInString(name)
	}
	return k
}

func TestEditor(t *testing.T) {
	for _, test := range []struct {
		name, text string
		keys       string // a text after + is inserted
		want       string
	}{
		{"type", "ab", "+c", "abc|"},
		{"line feeds of other systems", "a\r\nb\rc", "", "a\nb\nc|"},
		{"what steers the terminal", "a\x1b[31mb\u009b\u202e", "", "a[31mb|"},
		{"tabs", "\ta", "", "    a|"},
		{"empty lines", "\n\na\n", "", "\n\na\n|"},
		{"left", "añb", "left left +x", "ax|ñb"},
		{"one character of many", "x👩‍👩‍👧", "backspace", "x|"},
		{"over one character of many", "x👩‍👩‍👧y", "left left", "x|👩‍👩‍👧y"},
		{"and back", "x👩‍👩‍👧y", "home right right", "x👩‍👩‍👧|y"},
		{"one character of many after", "x👩‍👩‍👧y", "home right delete", "x|y"},
		{"joins the one before", "e", "+\u0301 +! left backspace", "|!"},
		{"joins the one after", "\u0301", "home +e", "e\u0301|"},
		{"word", "one two  ", "ctrl+w", "one |"},
		{"words", "one two", "alt+b alt+b alt+f", "one| two"},
		{"line", "one\ntwo", "ctrl+u", "one\n|"},
		{"line ends", "one\ntwo", "up home right ctrl+k", "o|\ntwo"},
		{"joins lines", "one\ntwo", "home backspace", "one|two"},
		{"joins lines after", "one\ntwo", "up end delete", "one|two"},
		{"to the line before", "one\ntwo", "home left", "one|\ntwo"},
		{"up", "one\ntwo", "up", "one|\ntwo"},
		{"up to a shorter line", "o\ntwo", "up", "o|\ntwo"},
		{"up past a shorter line", "one\no\ntwo", "up up", "one|\no\ntwo"},
		{"up in a long line", "abcdefgh", "up", "ab|cdefgh"},
		{"up to the middle of a character", "👩‍👩‍👧ab\nabc", "left up", "|👩‍👩‍👧ab\nabc"},
		{"nothing above", "one", "up", "one|"},
		{"at the ends", "", "backspace delete left right up down", "|"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := edited(t, 8, 10, test.text)
			for k := range strings.FieldsSeq(test.keys) {
				if text, ok := strings.CutPrefix(k, "+"); !ok {
					e.press(keyNamed(k))
				} else if err := e.insert(text); err != nil {
					t.Fatal(err)
				}
			}
			if got := with(e); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestEditorLimits checks that the editor refuses text that would be cut, or that takes too long to
// show.
func TestEditorLimits(t *testing.T) {
	e := newEditor()
	if err := e.insert(strings.Repeat("\n", maxLines-1)); err != nil || e.LineCount() != maxLines {
		t.Errorf("%d lines: %v, and %d are there", maxLines, err, e.LineCount())
	}
	if err := e.insert("x\ny"); err == nil || e.LineCount() != maxLines || strings.Contains(e.Value(), "x") {
		t.Errorf("one more: %v, and %d lines", err, e.LineCount())
	}
	if err := e.insert("x"); err != nil || !strings.HasSuffix(e.Value(), "x") {
		t.Errorf("one more character: %v", err)
	}
	e.Reset()
	for name, text := range map[string]string{
		"marks": "e" + strings.Repeat("\u0301", 1e6), "spaces of no width": strings.Repeat("\u200b", 1e6), "joiners": strings.Repeat("👩\u200d", 1e6),
	} {
		if err := e.insert(text); err == nil || !e.empty() {
			t.Errorf("a million %s: %v", name, err)
		}
	}
	if err := e.insert(strings.Repeat("e\u0301\u0302", 1000)); err != nil {
		t.Errorf("marks as they are used: %v", err)
	}
}

func TestEditorView(t *testing.T) {
	e := edited(t, 8, 10, "one\nlong words\n")
	if got, want := rows(e), "> one/  long/  words/"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if c := e.Cursor(); c.X != 2 || c.Y != 3 {
		t.Errorf("the cursor is shown at %d, %d", c.X, c.Y)
	}
	e = edited(t, 8, 10, "日本e\u0301")
	if c := e.Cursor(); c.X != 7 || c.Y != 0 {
		t.Errorf("after five columns the cursor is shown at %d, %d", c.X, c.Y)
	}
	e = edited(t, 8, 10, "abcdef")
	if c := e.Cursor(); c.X != 2 || c.Y != 1 {
		t.Errorf("after a full row the cursor is shown at %d, %d, want it below", c.X, c.Y)
	}
	e = edited(t, 8, 2, "1\n2\n3\n4\n5")
	if got, want := rows(e), "  4/  5"; got != want || e.Cursor().Y != 1 {
		t.Errorf("at the end of a long text: got %q, cursor in row %d", got, e.Cursor().Y)
	}
	e.resize(8, 3)
	e.resize(8, 1)
	if got, want := rows(e), "  5"; got != want || e.Cursor().Y != 0 {
		t.Errorf("on a lower terminal: got %q, cursor in row %d", got, e.Cursor().Y)
	}
	e.set("6\n7\n8")
	if got, want := rows(e), "  8"; got != want || e.Cursor().Y != 0 {
		t.Errorf("another text: got %q, cursor in row %d", got, e.Cursor().Y)
	}
}

func rows(e *editor) string {
	lines := strings.Split(ansi.Strip(e.View()), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "/")
}

// TestEditorProperties checks that after any edits the rows fit, the cursor is in one of them, and
// it is between characters.
func TestEditorProperties(t *testing.T) {
	pieces := rapid.SliceOf(rapid.SampledFrom([]string{"a", " ", "\n", "日", "e", "\u0301", "👩", "\u200d", "🇩", "word ", "long words"}))
	keys := rapid.SampledFrom([]string{
		"up", "down", "left", "right", "home", "end", "pgup", "pgdown", "ctrl+home", "ctrl+end", "alt+b", "alt+f", "backspace", "delete",
		"ctrl+w", "alt+d", "ctrl+u", "ctrl+k", "ctrl+t", "ctrl+v", "ctrl+g", "shift+left", "shift+up", "alt+c", "alt+u", "alt+l",
	})
	rapid.Check(t, func(t *rapid.T) {
		width, height := rapid.IntRange(8, 20).Draw(t, "width"), rapid.IntRange(1, 6).Draw(t, "height")
		e := newEditor()
		e.resize(width, height)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1:
				if err := e.insert(strings.Join(pieces.Draw(t, "text"), "")); err != nil {
					t.Fatal(err)
				}
			case 2:
				width, height = rapid.IntRange(8, 20).Draw(t, "width"), rapid.IntRange(1, 6).Draw(t, "height")
				e.resize(width, height)
			default:
				e.press(keyNamed(keys.Draw(t, "key")))
			}
			if before, here, after := e.around(); here != e.Column() || before > here || after < here {
				t.Fatalf("the cursor stands in a character: %q", with(&e))
			}
			lines := strings.Split(e.View(), "\n")
			if len(lines) > height {
				t.Fatalf("%d rows instead of at most %d", len(lines), height)
			}
			for _, l := range lines {
				if ansi.StringWidth(l) > width {
					t.Fatalf("row %q is wider than %d", l, width)
				}
			}
			if c := e.Cursor(); c.Y < 0 || c.Y >= len(lines) || c.X < len(prompt) || c.X >= width {
				t.Fatalf("the cursor is shown at %d, %d of %q", c.X, c.Y, lines)
			}
		}
	})
}
