package rx

import "unicode/utf8"

// A RuneRange is the code points from Lo to Hi, both included.
type RuneRange struct{ Lo, Hi rune }

// Runes returns the UTF-8 encodings of single code points of the ranges. Surrogates are left out,
// as they have none.
func (s *Space) Runes(ranges ...RuneRange) Expr {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sequences []Expr
	add := func(lo, hi rune) {
		for lo <= hi {
			end := min(hi, lastOfLength(lo))
			s.utf8(lo, end, &sequences)
			lo = end + 1
		}
	}
	for _, r := range ranges {
		lo, hi := max(r.Lo, 0), min(r.Hi, utf8.MaxRune)
		add(lo, min(hi, 0xD7FF))
		add(max(lo, 0xE000), hi)
	}
	return s.or(sequences)
}

// lastOfLength returns the last code point whose encoding is as long as that of r.
func lastOfLength(r rune) rune {
	switch {
	case r < 1<<7:
		return 1<<7 - 1
	case r < 1<<11:
		return 1<<11 - 1
	case r < 1<<16:
		return 1<<16 - 1
	}
	return utf8.MaxRune
}

// utf8 appends the encodings of the code points from lo to hi, all of one length.
func (s *Space) utf8(lo, hi rune, to *[]Expr) {
	// Split the range where a continuation byte does not take all its values.
	for bits := 6; bits <= 18 && lo >= 1<<7; bits += 6 {
		low := rune(1)<<bits - 1
		if lo&^low == hi&^low {
			break
		}
		if lo&low != 0 {
			s.utf8(lo, lo|low, to)
			s.utf8((lo|low)+1, hi, to)
			return
		}
		if hi&low != low {
			s.utf8(lo, hi&^low-1, to)
			s.utf8(hi&^low, hi, to)
			return
		}
	}
	var first, last [utf8.UTFMax]byte
	n := utf8.EncodeRune(first[:], lo)
	utf8.EncodeRune(last[:], hi)
	e := Empty
	for i := n - 1; i >= 0; i-- {
		e = s.concat(s.bytes(ByteRange(first[i], last[i])), e)
	}
	*to = append(*to, e)
}
