package tokenizer

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// unicodeForm normalizes text to a form of UAX #15.
//
// Package norm has the decompositions and compositions, but its conversion inserts a joiner into
// runs of more than 30 combining marks, and its data is newer than the Unicode 9.0 of Hugging Face
// tokenizers. A character newer than 9.0 composes with nothing and is not reordered.
type unicodeForm norm.Form

// scalar is a character during normalization.
type scalar struct {
	r       rune // or an invalid byte
	invalid bool // r is such a byte
	order   uint8
	joins   bool // may compose with a character before it
	inert   bool // composes with nothing
	marked  bool
}

// formBytes is the length in bytes above which text is normalized in parts, since scalars take much
// more memory than text.
const formBytes = 1 << 14

func (f unicodeForm) apply(w *work, text string, marks []bool) (string, []bool) {
	return f.inParts(w, text, marks, formBytes)
}

// inParts is apply in parts of at least size bytes.
func (f unicodeForm) inParts(w *work, text string, marks []bool, size int) (string, []bool) {
	form := norm.Form(f)
	// Text that is normal by newer data is normal by older data too, which composes and reorders
	// less.
	normal := form.QuickSpanString(text)
	if normal == len(text) {
		return text, marks
	}
	decomposed := norm.NFD
	if form == norm.NFKC || form == norm.NFKD {
		decomposed = norm.NFKD
	}
	var out strings.Builder
	out.Grow(len(text))
	out.WriteString(text[:normal])
	var outMarks []bool
	if marks != nil {
		outMarks = slices.Clone(marks[:normal])
	}
	for at := normal; at < len(text); {
		end := at + formPart(w, text[at:], size)
		scalars := decompose(w, decomposed, text[at:end], marks[min(at, len(marks)):min(end, len(marks))])
		reorder(w, scalars)
		if form == norm.NFC || form == norm.NFKC {
			scalars = compose(w, scalars)
		}
		for _, s := range scalars {
			before := out.Len()
			if s.invalid {
				out.WriteByte(byte(s.r))
			} else {
				out.WriteRune(s.r)
			}
			if marks != nil {
				outMarks = repeatMark(outMarks, s.marked, out.Len()-before)
			}
		}
		at = end
	}
	return out.String(), outMarks
}

// formPart returns the length of the first part of text, at least size bytes. It ends before a
// character that neither composes with nor moves before an earlier one.
func formPart(w *work, text string, size int) int {
	for i := size; i < len(text); i++ {
		w.step(1)
		if c := text[i]; c < utf8.RuneSelf {
			return i
		} else if !utf8.RuneStart(c) {
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 || !unicode.Is(unicode9, r) {
			return i
		}
		if norm.NFD.PropertiesString(text[i:i+n]).BoundaryBefore() && norm.NFC.PropertiesString(text[i:i+n]).BoundaryBefore() && norm.NFKD.PropertiesString(text[i:i+n]).BoundaryBefore() {
			return i
		}
	}
	return len(text)
}

// decompose returns the decomposed characters of text. marks is empty or has one entry per byte.
func decompose(w *work, form norm.Form, text string, marks []bool) []scalar {
	scalars := make([]scalar, 0, len(text))
	var buffer []byte
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		w.step(n)
		marked := len(marks) > 0 && anyMark(marks[i:i+n])
		switch {
		case r < utf8.RuneSelf:
			scalars = append(scalars, scalar{r: r, marked: marked})
		case r == utf8.RuneError && n == 1:
			scalars = append(scalars, scalar{r: rune(text[i]), invalid: true, inert: true, marked: marked})
		case !unicode.Is(unicode9, r):
			scalars = append(scalars, scalar{r: r, inert: true, marked: marked})
		default:
			buffer = form.AppendString(buffer[:0], text[i:i+n])
			for rest := buffer; len(rest) > 0; {
				r, n := utf8.DecodeRune(rest)
				p := norm.NFC.Properties(rest)
				scalars = append(scalars, scalar{
					r: r, order: p.CCC(), joins: !p.BoundaryBefore(), marked: marked,
				})
				rest = rest[n:]
			}
		}
		i += n
	}
	return scalars
}

// reorder puts each run of combining marks in the canonical order.
func reorder(w *work, scalars []scalar) {
	for i := 0; i < len(scalars); {
		start := i
		w.step(1)
		for i < len(scalars) && scalars[i].order != 0 {
			i++
		}
		if i > start+1 {
			slices.SortStableFunc(scalars[start:i], func(a, b scalar) int {
				w.step(1)
				return cmp.Compare(a.order, b.order)
			})
		}
		i++
	}
}

// compose composes scalars in place: each that can compose with the last starter joins it.
func compose(w *work, scalars []scalar) []scalar {
	out := scalars[:0]
	starter := -1     // in out
	last := uint8(0)  // the order of the last scalar in out
	var buffer []byte // of composition
	for _, s := range scalars {
		w.step(1)
		if starter >= 0 && s.joins && (starter == len(out)-1 || last < s.order) {
			buffer = utf8.AppendRune(buffer[:0], out[starter].r)
			buffer = utf8.AppendRune(buffer, s.r)
			composed := norm.NFC.Bytes(buffer)
			if r, n := utf8.DecodeRune(composed); n == len(composed) {
				out[starter].r = r
				out[starter].marked = out[starter].marked || s.marked
				continue
			}
		}
		switch {
		case s.inert:
			starter = -1
		case s.order == 0:
			starter = len(out)
		}
		last = s.order
		out = append(out, s)
	}
	return out
}
