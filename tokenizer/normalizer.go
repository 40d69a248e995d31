package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// normalizer changes text before the model, and before normalized added tokens are matched, sees it.
type normalizer []normalStep

// normalStep is one change. marks, unless it is nil, holds for every byte of text whether special tokens
// may not match in it; the result's marks do for the result, a byte being marked when a byte that it
// was made of is.
type normalStep interface {
	apply(text string, marks []bool) (string, []bool)
}

func (n normalizer) apply(w *work, text string, marks []bool) (string, []bool) {
	for _, step := range n {
		w.step(len(text))
		text, marks = step.apply(text, marks)
	}
	return text, marks
}

// prepend puts text before text that is not empty.
type prepend string

func (p prepend) apply(text string, marks []bool) (string, []bool) {
	if text == "" {
		return text, marks
	}
	if marks != nil {
		marks = append(repeatMark(nil, marks[0], len(p)), marks...)
	}
	return string(p) + text, marks
}

// replace puts to in the place of every match of from.
type replace struct {
	from finder
	to   string
}

func (r replace) apply(text string, marks []bool) (string, []bool) {
	if marks == nil {
		return r.text(text), nil
	}
	var out strings.Builder
	outMarks := make([]bool, 0, len(text))
	at := 0
	r.from.each(text, func(start, end int) bool {
		out.WriteString(text[at:start])
		out.WriteString(r.to)
		outMarks = repeatMark(append(outMarks, marks[at:start]...), anyMark(marks[start:end]), len(r.to))
		at = end
		return true
	})
	out.WriteString(text[at:])
	outMarks = append(outMarks, marks[at:]...)
	return out.String(), outMarks
}

// text returns text with to in the place of every match.
func (r replace) text(text string) string {
	if l, ok := r.from.(literal); ok {
		return strings.ReplaceAll(text, string(l), r.to)
	}
	var out strings.Builder
	at := 0
	r.from.each(text, func(start, end int) bool {
		out.WriteString(text[at:start])
		out.WriteString(r.to)
		at = end
		return true
	})
	out.WriteString(text[at:])
	return out.String()
}

// lowercase maps each character to lower case.
type lowercase struct{}

func (lowercase) apply(text string, marks []bool) (string, []bool) {
	var out strings.Builder
	out.Grow(len(text))
	var outMarks []bool
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		before := out.Len()
		switch {
		case r == utf8.RuneError && n == 1:
			out.WriteByte(text[i])
		case r == 'İ': // the one character whose lower case is two
			out.WriteString("i\u0307")
		default:
			out.WriteRune(toLower(r))
		}
		if marks != nil {
			outMarks = repeatMark(outMarks, anyMark(marks[i:i+n]), out.Len()-before)
		}
		i += n
	}
	return out.String(), outMarks
}

// strip removes white space at the ends.
type strip struct{ left, right bool }

func (s strip) apply(text string, marks []bool) (string, []bool) {
	start, end := 0, len(text)
	if s.left {
		start = end - len(strings.TrimLeftFunc(text, isSpace))
	}
	if s.right {
		end = start + len(strings.TrimRightFunc(text[start:], isSpace))
	}
	if marks != nil {
		marks = marks[start:end]
	}
	return text[start:end], marks
}

func repeatMark(marks []bool, mark bool, n int) []bool {
	for range n {
		marks = append(marks, mark)
	}
	return marks
}

func anyMark(marks []bool) bool {
	for _, m := range marks {
		if m {
			return true
		}
	}
	return false
}
