package main

import (
	"cmp"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// Texts are written for terminals of so many columns.
const (
	narrowest = 60
	widest    = 200
)

// textWidth is how many columns text written to f may have: those that the variable COLUMNS
// says, those of the terminal, or 80.
func textWidth(f *os.File) int {
	n, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if (err != nil || n <= 0) && f != nil {
		n, _, _ = term.GetSize(int(f.Fd())) // 0 where f is not a terminal
	}
	if n <= 0 {
		n = 80
	}
	return max(narrowest, min(n, widest))
}

// terminalWidth is how many columns messages and results written to f may have: any number, 0,
// where f is not a terminal, because a program reads them by lines.
func terminalWidth(f *os.File) int {
	if f == nil || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	return textWidth(f)
}

// words breaks text into lines of at most width columns, or any number if width is 0, between
// its words.
func words(text string, width int) []string {
	width = cmp.Or(width, math.MaxInt)
	var lines []string
	for word := range strings.FieldsSeq(text) {
		if last := len(lines) - 1; last >= 0 && ansi.StringWidth(lines[last])+1+ansi.StringWidth(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// hanging breaks text into lines as words does. All begin at the column left, the first behind
// first.
func hanging(first, text string, left, width int) []string {
	if width > 0 {
		width = max(20, width-left)
	}
	lines := words(text, width)
	if len(lines) == 0 {
		return []string{strings.TrimRight(first, " ")}
	}
	for i, l := range lines {
		lines[i] = first + strings.Repeat(" ", left-ansi.StringWidth(first)) + l
		first = ""
	}
	return lines
}

// fitted breaks the lines of text that are wider than width between their words. Indented lines
// stay as they are: they quote something.
func fitted(text string, width int) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if width > 0 && ansi.StringWidth(l) > width && !strings.HasPrefix(l, " ") {
			lines[i] = strings.Join(words(l, width), "\n")
		}
	}
	return strings.Join(lines, "\n")
}

// wrap breaks text into lines of at most width columns, between words where it
// can. The last line is not complete: what comes next may still belong to it.
// Blanks at its end are kept even where they do not fit, because the place
// where it will be broken is not known yet.
func wrap(text string, width int) (complete []string, rest string) {
	width = max(1, width)
	words := trimmed(text)
	// Wrap leaves a line too long where a dash or a word of the whole width
	// follows a blank.
	lines := strings.Split(ansi.Hardwrap(ansi.Wrap(words, width, ""), width, true), "\n")
	last := len(lines) - 1
	return lines[:last], lines[last] + text[len(words):]
}

// trimmed is a line without the blanks at its end.
func trimmed(text string) string {
	return strings.TrimRightFunc(text, func(r rune) bool { return r != '\n' && unicode.IsSpace(r) })
}

// shown is what an answer looks like on a terminal: nothing in it steers the
// terminal, and tabs have a width.
func shown(text string) string {
	return strings.ReplaceAll(printable(text), "\t", "    ")
}
