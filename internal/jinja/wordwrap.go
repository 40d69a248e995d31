package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

func filterWordwrap(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("width?", "break_long_words?", "wrapstring?", "break_on_hyphens?")
	if err != nil {
		return nil, err
	}
	w := wrapper{in: in}
	if w.width, err = a.argInt(args[0], 79); err != nil {
		return nil, err
	}
	w.breakLong = args[1] == nil || truth(args[1])
	w.hyphens = args[3] == nil || truth(args[3])
	sep := &Str{s: "\n"}
	if args[2] != nil && args[2] != None {
		if sep, err = a.argStr(args[2]); err != nil {
			return nil, err
		}
	}
	s, ok := v.(*Str)
	if !ok {
		return nil, in.missingMethod(v, "splitlines")
	}
	b := in.builder()
	for i, paragraph := range in.splitLines(s, false) {
		if i > 0 {
			b.str(sep)
		}
		if w.width <= 0 {
			return nil, valueErrorf("invalid width %d (must be > 0)", w.width)
		}
		for j, line := range w.wrap(paragraph) {
			if j > 0 {
				b.str(sep)
			}
			b.str(line)
		}
	}
	out := b.done()
	out.safe = s.safe
	return out, nil
}

// A wrapper breaks paragraphs into lines by the rules of Python's textwrap.
type wrapper struct {
	in        *interp
	width     int
	breakLong bool
	hyphens   bool
}

// A chunk is a piece of a paragraph that stays on one line: its bounds in
// bytes and its length in characters.
type chunk struct{ from, to, runes int }

func (w *wrapper) wrap(s *Str) []*Str {
	text := s.s
	chunks := w.chunks(text)
	blank := func(c chunk) bool { return w.in.skip(text[c.from:c.to], isSpace) == c.to-c.from }
	var lines []*Str
	for len(chunks) > 0 {
		w.in.step(8)
		if len(lines) > 0 && blank(chunks[0]) {
			chunks = chunks[1:]
		}
		var line []chunk
		used := 0
		for len(chunks) > 0 && used+chunks[0].runes <= w.width {
			line = append(line, chunks[0])
			used += chunks[0].runes
			chunks = chunks[1:]
		}
		if len(chunks) > 0 && chunks[0].runes > w.width {
			if w.breakLong {
				head, tail := w.cut(text, chunks[0], w.width-used)
				line = append(line, head)
				chunks[0] = tail
			} else if len(line) == 0 {
				line = append(line, chunks[0])
				chunks = chunks[1:]
			}
		}
		if len(line) > 0 && blank(line[len(line)-1]) {
			line = line[:len(line)-1]
		}
		if len(line) > 0 {
			w.in.items(4)
			lines = append(lines, s.slice(line[0].from, line[len(line)-1].to))
		}
	}
	return lines
}

// cut divides a chunk that is too long for a line where it fills the room
// left, or behind the last hyphen before that.
func (w *wrapper) cut(text string, c chunk, room int) (head, tail chunk) {
	n := min(room, c.runes)
	end := c.from + w.in.runeOffset(text[c.from:c.to], n)
	if w.hyphens && c.runes > room {
		at := w.in.lastIndex(text[c.from:end], "-")
		if at > 0 && w.in.skip(text[c.from:c.from+at], func(r rune) bool { return r == '-' }) < at {
			end = c.from + at + 1
			n = w.in.runeCount(text[c.from:end])
		}
	}
	return chunk{c.from, end, n}, chunk{end, c.to, c.runes - n}
}

func isWrapSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// chunks divides a paragraph at white space and, if wanted, behind hyphens
// within words and around dashes.
func (w *wrapper) chunks(text string) []chunk {
	var out []chunk
	for i := 0; i < len(text); {
		end := i
		switch {
		case isWrapSpace(text[i]):
			for end < len(text) && isWrapSpace(text[end]) {
				w.in.step(1)
				end++
			}
		case w.hyphens && w.dashAt(text, i) > 0:
			end = i + w.dashAt(text, i)
		default:
			end = w.wordEnd(text, i)
		}
		w.in.items(2)
		out = append(out, chunk{i, end, w.in.runeCount(text[i:end])})
		i = end
	}
	return out
}

// dashAt returns the length of a dash of two or more hyphens at i, between a
// word or punctuation and a word.
func (w *wrapper) dashAt(text string, i int) int {
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	if i == 0 || !isWord(before) && !strings.ContainsRune("!\"'&.,?", before) {
		return 0
	}
	n := 0
	for i+n < len(text) && text[i+n] == '-' {
		w.in.step(1)
		n++
	}
	after, _ := utf8.DecodeRuneInString(text[i+n:])
	if n < 2 || !isWord(after) {
		return 0
	}
	return n
}

func (w *wrapper) wordEnd(text string, i int) int {
	for end := i; end < len(text); {
		w.in.step(4)
		_, n := utf8.DecodeRuneInString(text[end:])
		end += n
		if end == len(text) || isWrapSpace(text[end]) {
			return end
		}
		if w.hyphens && (hyphenBreak(text, i, end) || w.dashAt(text, end) > 0) {
			return end
		}
	}
	return len(text)
}

// hyphenBreak reports whether the text may break behind a hyphen that ends at
// end: two letters, or a letter, a hyphen and a letter, stand before it and a
// letter, perhaps a hyphen, and a letter after it.
func hyphenBreak(text string, start, end int) bool {
	if text[end-1] != '-' || end-1 == start {
		return false
	}
	letter := func(r rune) bool { return isWord(r) && r != '_' && !unicode.IsDigit(r) }
	before := text[:end-1]
	last, n := utf8.DecodeLastRuneInString(before)
	before = before[:len(before)-n]
	if !letter(last) {
		return false
	}
	second, n := utf8.DecodeLastRuneInString(before)
	if second == '-' {
		second, _ = utf8.DecodeLastRuneInString(before[:len(before)-n])
	}
	if !letter(second) {
		return false
	}
	first, n := utf8.DecodeRuneInString(text[end:])
	rest := strings.TrimPrefix(text[end+n:], "-")
	next, _ := utf8.DecodeRuneInString(rest)
	return letter(first) && letter(next)
}
