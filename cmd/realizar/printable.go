package main

import (
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// printable returns s without the characters that could steer a terminal: control characters except
// line feed and tab, and those that change the direction of text.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, s)
}

// safely returns a writer to f. A terminal gets only printable text, because the text may come from
// a model or its files; other files get every byte.
func safely(f *os.File) io.Writer {
	if term.IsTerminal(int(f.Fd())) {
		return &printableWriter{w: f}
	}
	return f
}

// A printableWriter writes what is printable. A character may be split between calls.
type printableWriter struct {
	w    io.Writer
	held []byte // the beginning of an incomplete character
}

func (p *printableWriter) Write(b []byte) (int, error) {
	text := append(p.held, b...)
	end := len(text)
	for i := max(0, end-utf8.UTFMax+1); i < len(text); i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			end = i
			break
		}
	}
	p.held = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(p.w, printable(string(text[:end]))); err != nil {
		return 0, err
	}
	return len(b), nil
}
