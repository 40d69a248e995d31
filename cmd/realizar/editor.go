package main

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/rivo/uniseg"
)

const (
	prompt = "> "
	margin = "  " // before the further rows of a message

	maxRows  = 10    // of the input on the screen
	maxLines = 10000 // of the input; a text area drops further lines
	maxRun   = 64    // consecutive code points that add no column; a text area takes their square in time to break a line
)

// An editor is a text area whose cursor stands between characters as a reader sees them (grapheme
// clusters); the cursor of [textarea.Model] stands between code points.
type editor struct{ textarea.Model }

func newEditor() editor {
	e := editor{textarea.New()}
	e.ShowLineNumbers, e.MaxWidth, e.DynamicHeight = false, 0, true
	e.SetPromptFunc(len(prompt), func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return prompt
		}
		return margin
	})
	e.SetStyles(textarea.Styles{Cursor: textarea.CursorStyle{Blink: true}})
	e.SetVirtualCursor(false)
	keys := &e.KeyMap
	for _, b := range []*key.Binding{
		// A line feed is inserted by pasting.
		&keys.InsertNewline,
		// The terminal selects, copies and pastes.
		&keys.SelectCharacterForward, &keys.SelectCharacterBackward, &keys.SelectWordForward, &keys.SelectWordBackward,
		&keys.SelectLineUp, &keys.SelectLineDown, &keys.SelectAll, &keys.CopySelection, &keys.Paste,
		// It would split characters.
		&keys.TransposeCharacterBackward,
	} {
		b.SetEnabled(false)
	}
	e.Focus()
	return e
}

// resize makes the editor width columns wide and at most height rows high.
func (e *editor) resize(width, height int) {
	e.MaxHeight = max(1, min(maxRows, height))
	e.SetWidth(width)
	e.update(nil) // it scrolls to the cursor
}

func (e *editor) update(msg tea.Msg) { e.Model, _ = e.Update(msg) }

func (e *editor) empty() bool { return e.Value() == "" }

// set replaces the text by an earlier text of an editor.
func (e *editor) set(text string) {
	e.Reset()
	e.update(tea.PasteMsg{Content: text}) // unlike SetValue, it scrolls to the cursor
}

// insert inserts text before the cursor, all of it or nothing. It drops characters that could
// control a terminal.
func (e *editor) insert(text string) error {
	text = printable(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text))
	if n := e.LineCount() + strings.Count(text, "\n"); n > maxLines {
		return fmt.Errorf("a message of %d lines is too long to edit here; the limit is %d", n, maxLines)
	}
	if n := longestRun(text); n > maxRun {
		return fmt.Errorf("%d invisible characters in a row cannot be edited here; the limit is %d", n, maxRun)
	}
	e.update(tea.PasteMsg{Content: text})
	_, here, _ := e.around() // the inserted text may have joined the next character
	e.moveTo(here)
	return nil
}

// longestRun returns the largest number of consecutive code points that share the columns of one
// character.
func longestRun(text string) int {
	longest, run := 0, 0
	for g := uniseg.NewGraphemes(text); g.Next(); {
		if c := g.Str(); c == "\n" || ansi.StringWidth(c) > 0 {
			run = 0
		}
		run += len(g.Runes())
		longest = max(longest, run)
	}
	return longest
}

// press handles a key that inserts nothing.
func (e *editor) press(k tea.KeyPressMsg) {
	times := 1
	switch before, _, after := e.around(); {
	case key.Matches(k, e.KeyMap.CharacterBackward, e.KeyMap.DeleteCharacterBackward):
		times = max(1, e.Column()-before)
	case key.Matches(k, e.KeyMap.CharacterForward, e.KeyMap.DeleteCharacterForward):
		times = max(1, after-e.Column())
	}
	for range times {
		e.update(k)
	}
	if before, here, _ := e.around(); here != e.Column() {
		e.moveTo(before)
	}
}

// moveTo moves the cursor within its line.
func (e *editor) moveTo(column int) {
	if column != e.Column() {
		e.SetCursorColumn(column)
		e.update(nil) // it scrolls to the cursor
	}
}

// around returns the boundaries of characters in the cursor's line, in code points: before the
// cursor, at it or else after it, and after that.
func (e *editor) around() (before, here, after int) {
	line := strings.Split(e.Value(), "\n")[e.Line()]
	bounds := []int{0}
	for g := uniseg.NewGraphemes(line); g.Next(); {
		bounds = append(bounds, bounds[len(bounds)-1]+len(g.Runes()))
	}
	i, at := slices.BinarySearch(bounds, e.Column())
	before, here, after = bounds[max(0, i-1)], bounds[i], bounds[i]
	if at {
		after = bounds[min(i+1, len(bounds)-1)]
	}
	return before, here, after
}

// row returns the cursor's line, and the row within that line.
func (e *editor) row() [2]int { return [2]int{e.Line(), e.LineInfo().RowOffset} }
