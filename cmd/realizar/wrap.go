package main

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// wrap breaks text into lines of at most width columns, between words if possible. The last line is
// incomplete: what comes next may belong to it. Its trailing spaces are kept even if they do not
// fit, because the line's end is not known yet.
func wrap(text string, width int) (complete []string, rest string) {
	width = max(1, width)
	words := trimmed(text)
	// Wrap leaves a line too long if a dash or a word of the full width follows a space.
	lines := strings.Split(ansi.Hardwrap(ansi.Wrap(words, width, ""), width, true), "\n")
	last := len(lines) - 1
	return lines[:last], lines[last] + text[len(words):]
}

// trimmed returns text without the spaces at its end.
func trimmed(text string) string {
	return strings.TrimRightFunc(text, func(r rune) bool { return r != '\n' && unicode.IsSpace(r) })
}

// shown returns an answer's text for a terminal: without control characters, and with tabs as
// spaces.
func shown(text string) string {
	return strings.ReplaceAll(printable(text), "\t", "    ")
}
