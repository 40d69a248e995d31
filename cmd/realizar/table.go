package main

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/realizar/realizar/internal/bytesize"
)

// A table is text in columns.
type table struct{ rows [][]string }

func newTable() *table { return &table{} }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// text is the table with two spaces between columns; the columns named by right
// end where their widest cell ends.
func (t *table) text(right ...int) string {
	var widths []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, r := range t.rows {
		var line strings.Builder
		for i, c := range r {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if slices.Contains(right, i) {
				c = pad + c
			} else {
				c += pad
			}
			if i > 0 {
				line.WriteString("  ")
			}
			line.WriteString(c)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// byteText is a number of bytes in the largest unit that leaves one before the
// point.
func byteText(n int64) string { return bytesize.Text(n) }
