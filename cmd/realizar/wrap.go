package main

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// wrap breaks text into lines of at most width columns, between words where it
// can. The last line is not complete: what comes next may still belong to it.
func wrap(text string, width int) (complete []string, rest string) {
	width = max(1, width)
	start, used := 0, 0 // of the line in text
	space := -1         // the last place where the line may be broken
	at := 0
	for _, c := range clusters(text) {
		if c == "\n" || c == "\r\n" {
			complete = append(complete, text[start:at])
			at += len(c)
			start, used, space = at, 0, -1
			continue
		}
		w := ansi.StringWidth(c)
		if used+w > width && at > start {
			if c == " " { // it stands for the break
				complete = append(complete, text[start:at])
				at++
				start, used, space = at, 0, -1
				continue
			}
			if space >= 0 {
				complete = append(complete, text[start:space])
				start, used = space+1, ansi.StringWidth(text[space+1:at])
			} else {
				complete = append(complete, text[start:at])
				start, used = at, 0
			}
			space = -1
		}
		if c == " " {
			space = at
		}
		used += w
		at += len(c)
	}
	return complete, text[start:]
}

// shown is what an answer looks like on a terminal: nothing in it steers the
// terminal, and tabs have a width.
func shown(text string) string {
	return strings.ReplaceAll(printable(text), "\t", "    ")
}
