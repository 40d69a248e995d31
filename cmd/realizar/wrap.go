package main

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

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
