package pattern

import (
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"

	"github.com/realizar/realizar/internal/rx"
)

// A set is a set of code points, as sorted ranges with gaps between them. It may contain
// surrogates.
type set []rx.RuneRange

var everything = set{{Lo: 0, Hi: utf8.MaxRune}}

func single(r rune) set { return set{{Lo: r, Hi: r}} }

// setOf returns the set of the ranges lo, hi, lo, hi, ...
func setOf(bounds ...rune) set {
	var s set
	for i := 0; i < len(bounds); i += 2 {
		s = append(s, rx.RuneRange{Lo: bounds[i], Hi: bounds[i+1]})
	}
	return s.normal()
}

// normal sorts s in place and joins ranges that overlap or touch.
func (s set) normal() set {
	slices.SortFunc(s, func(a, b rx.RuneRange) int { return int(a.Lo) - int(b.Lo) })
	out := s[:0]
	for _, r := range s {
		if n := len(out); n > 0 && r.Lo <= out[n-1].Hi+1 {
			out[n-1].Hi = max(out[n-1].Hi, r.Hi)
			continue
		}
		out = append(out, r)
	}
	return out
}

func (s set) union(others ...set) set {
	all := slices.Clone(s)
	for _, o := range others {
		all = append(all, o...)
	}
	return all.normal()
}

func (s set) not() set {
	var out set
	next := rune(0)
	for _, r := range s {
		if r.Lo > next {
			out = append(out, rx.RuneRange{Lo: next, Hi: r.Lo - 1})
		}
		next = r.Hi + 1
	}
	if next <= utf8.MaxRune {
		out = append(out, rx.RuneRange{Lo: next, Hi: utf8.MaxRune})
	}
	return out
}

func (s set) and(o set) set {
	var out set
	for i, j := 0, 0; i < len(s) && j < len(o); {
		lo, hi := max(s[i].Lo, o[j].Lo), min(s[i].Hi, o[j].Hi)
		if lo <= hi {
			out = append(out, rx.RuneRange{Lo: lo, Hi: hi})
		}
		if s[i].Hi < o[j].Hi {
			i++
		} else {
			j++
		}
	}
	return out
}

func (s set) has(r rune) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].Hi >= r })
	return i < len(s) && s[i].Lo <= r
}

func (s set) equal(o set) bool { return slices.Equal(s, o) }

// key returns a map key, equal for equal sets.
func (s set) key() string {
	b := make([]byte, 0, 8*len(s))
	for _, r := range s {
		b = append(b, byte(r.Lo>>16), byte(r.Lo>>8), byte(r.Lo), byte(r.Hi>>16), byte(r.Hi>>8), byte(r.Hi))
	}
	return string(b)
}

// tables returns the union of Unicode range tables.
func tables(list ...*unicode.RangeTable) set {
	var s set
	for _, t := range list {
		for _, r := range t.R16 {
			s = appendStride(s, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			s = appendStride(s, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return s.normal()
}

func appendStride(s set, lo, hi, stride rune) set {
	if stride == 1 {
		return append(s, rx.RuneRange{Lo: lo, Hi: hi})
	}
	for r := lo; r <= hi; r += stride {
		s = append(s, rx.RuneRange{Lo: r, Hi: r})
	}
	return s
}

// Union returns the code points of the ranges, sorted and disjoint.
func Union(ranges []rx.RuneRange) []rx.RuneRange { return set(slices.Clone(ranges)).normal() }

// Complement returns all other code points, sorted and disjoint.
func Complement(ranges []rx.RuneRange) []rx.RuneRange { return set(Union(ranges)).not() }
