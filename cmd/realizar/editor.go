package main

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/rivo/uniseg"
)

// An editor is a text of several lines and a cursor in it. It counts in
// characters as a reader sees them (grapheme clusters).
type editor struct {
	chars []string // a line feed is one of them
	at    int      // the cursor stands before chars[at]
}

func (e *editor) text() string { return strings.Join(e.chars, "") }

func (e *editor) empty() bool { return len(e.chars) == 0 }

func (e *editor) clear() { e.chars, e.at = nil, 0 }

// insert puts text before the cursor. What could steer a terminal is left out.
func (e *editor) insert(text string) {
	text = printable(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "    ").Replace(text))
	before := strings.Join(e.chars[:e.at], "") + text
	after := strings.Join(e.chars[e.at:], "")
	e.chars = clusters(before + after)
	// What was inserted may have joined the character beside it.
	e.at = 0
	for n := 0; e.at < len(e.chars) && n < len(before); e.at++ {
		n += len(e.chars[e.at])
	}
}

func clusters(s string) []string {
	var all []string
	for state := -1; s != ""; {
		var c string
		c, s, _, state = uniseg.FirstGraphemeClusterInString(s, state)
		all = append(all, c)
	}
	return all
}

// delete removes what lies between the cursor and to.
func (e *editor) delete(to int) {
	lo, hi := min(e.at, to), max(e.at, to)
	e.chars, e.at = slices.Delete(e.chars, lo, hi), lo
}

func (e *editor) left() int  { return max(0, e.at-1) }
func (e *editor) right() int { return min(len(e.chars), e.at+1) }

// wordLeft is where the word before the cursor begins.
func (e *editor) wordLeft() int {
	i := e.at
	for i > 0 && blank(e.chars[i-1]) {
		i--
	}
	for i > 0 && !blank(e.chars[i-1]) {
		i--
	}
	return i
}

// wordRight is where the word after the cursor ends.
func (e *editor) wordRight() int {
	i := e.at
	for i < len(e.chars) && blank(e.chars[i]) {
		i++
	}
	for i < len(e.chars) && !blank(e.chars[i]) {
		i++
	}
	return i
}

func blank(char string) bool { return strings.TrimSpace(char) == "" }

// lineStart and lineEnd are the ends of the cursor's line.
func (e *editor) lineStart() int {
	i := e.at
	for i > 0 && e.chars[i-1] != "\n" {
		i--
	}
	return i
}

func (e *editor) lineEnd() int {
	i := e.at
	for i < len(e.chars) && e.chars[i] != "\n" {
		i++
	}
	return i
}

// rows are where the rows of the text begin when it is shown width columns
// wide.
func (e *editor) rows(width int) []int {
	starts, used := []int{0}, 0
	for i, c := range e.chars {
		w := ansi.StringWidth(c)
		if used+w > max(1, width) {
			starts, used = append(starts, i), 0
		}
		used += w
		if c == "\n" {
			starts, used = append(starts, i+1), 0
		}
	}
	if used >= max(1, width) { // room for the cursor
		starts = append(starts, len(e.chars))
	}
	return starts
}

// position is the row and the column of the cursor.
func (e *editor) position(starts []int) (row, column int) {
	row = len(starts) - 1
	for starts[row] > e.at {
		row--
	}
	for _, c := range e.chars[starts[row]:e.at] {
		column += ansi.StringWidth(c)
	}
	return row, column
}

// vertical is where the cursor stands by rows further down, and whether there
// is such a row.
func (e *editor) vertical(by, width int) (int, bool) {
	starts := e.rows(width)
	row, column := e.position(starts)
	row += by
	if row < 0 || row >= len(starts) {
		return e.at, false
	}
	end := len(e.chars)
	if row+1 < len(starts) {
		end = starts[row+1] - 1
	}
	to := starts[row]
	for used := 0; to < end; to++ {
		if used += ansi.StringWidth(e.chars[to]); used > column {
			break
		}
	}
	return to, true
}

// view is the text in rows of width columns, and where the cursor stands; at
// most height rows around it.
func (e *editor) view(width, height int) (lines []string, row, column int) {
	starts := e.rows(width)
	row, column = e.position(starts)
	for i, start := range starts {
		end := len(e.chars)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		lines = append(lines, strings.TrimSuffix(strings.Join(e.chars[start:end], ""), "\n"))
	}
	if len(lines) > height {
		first := min(max(0, row-height/2), len(lines)-height)
		lines, row = lines[first:first+height], row-first
	}
	return lines, row, column
}
