package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// normalizer changes text before normalized added tokens are matched and the model encodes it.
type normalizer []normalStep

// normalStep is one change. marks, unless nil, says for every byte of text whether special tokens
// may not match in it. The returned marks do so for the result: a byte is marked if a byte that it
// was made from is. apply counts its steps in w.
type normalStep interface {
	apply(w *work, text string, marks []bool) (string, []bool)
}

func (n normalizer) apply(w *work, text string, marks []bool) (string, []bool) {
	for _, step := range n {
		text, marks = step.apply(w, text, marks)
	}
	return text, marks
}

// prepend puts a string before text that is not empty.
type prepend string

func (p prepend) apply(w *work, text string, marks []bool) (string, []bool) {
	if text == "" {
		return text, marks
	}
	if marks != nil {
		marks = append(repeatMark(nil, marks[0], len(p)), marks...)
	}
	return string(p) + text, marks
}

// replace replaces every match of from by to.
type replace struct {
	from finder
	to   string
}

func (r replace) apply(w *work, text string, marks []bool) (string, []bool) {
	size := len(text)
	if l, ok := r.from.(literal); ok {
		size += max(0, len(r.to)-len(l)) * strings.Count(text, string(l))
	}
	var out strings.Builder
	var outMarks []bool
	at := 0
	r.from.each(w, text, func(start, end int) bool {
		if at == 0 {
			out.Grow(size)
			if marks != nil {
				outMarks = make([]bool, 0, size)
			}
		}
		w.step(len(r.to))
		out.WriteString(text[at:start])
		out.WriteString(r.to)
		if marks != nil {
			outMarks = repeatMark(append(outMarks, marks[at:start]...), anyMark(marks[start:end]), len(r.to))
		}
		at = end
		return true
	})
	if at == 0 && out.Len() == 0 {
		return text, marks
	}
	out.WriteString(text[at:])
	if marks != nil {
		outMarks = append(outMarks, marks[at:]...)
	}
	return out.String(), outMarks
}

// lowercase maps each character to lower case.
type lowercase struct{}

func (lowercase) apply(w *work, text string, marks []bool) (string, []bool) {
	var out strings.Builder
	out.Grow(len(text))
	var outMarks []bool
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		w.step(n)
		before := out.Len()
		switch {
		case r == utf8.RuneError && n == 1:
			out.WriteByte(text[i])
		case r == 'İ': // the only character with a lower case of two characters
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

func (s strip) apply(w *work, text string, marks []bool) (string, []bool) {
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
