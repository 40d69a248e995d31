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

// Text is written for terminals of at least and at most so many columns.
const (
	narrowest = 60
	widest    = 200
)

// textWidth returns the width of text for f in columns: COLUMNS if it is set, else that of the
// terminal, else 80.
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

// terminalWidth returns the width of messages and results for f in columns. It is 0, for any
// number, if f is not a terminal: what reads them there may expect whole lines.
func terminalWidth(f *os.File) int {
	if f == nil || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	return textWidth(f)
}

// words wraps text to lines of at most width columns; 0 is any number.
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

// hanging wraps text as words does. Every line begins at column left; the first line has first
// before it.
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

// hard breaks lines that have more than width columns in the middle of a word.
func hard(lines []string, width int) []string {
	var out []string
	for _, l := range lines {
		out = append(out, strings.Split(ansi.Hardwrap(l, width, true), "\n")...)
	}
	return out
}

// fitted wraps the lines of text that have more than width columns; 0 is any number. Indented lines
// are quotations and stay as they are.
func fitted(text string, width int) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if width > 0 && ansi.StringWidth(l) > width && !strings.HasPrefix(l, " ") {
			lines[i] = strings.Join(words(l, width), "\n")
		}
	}
	return strings.Join(lines, "\n")
}

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
