package fetch

import "slices"

// A span is the range of bytes [from, to) of a file.
type span struct{ from, to int64 }

func (s span) size() int64 { return s.to - s.from }

// spans is a sorted list of ranges that do not touch each other.
type spans []span

// add returns the union of s and n.
func (s spans) add(n span) spans {
	if n.size() <= 0 {
		return s
	}
	first, _ := slices.BinarySearchFunc(s, n, func(have, n span) int {
		if have.to < n.from {
			return -1
		}
		return 1
	})
	last := first
	for last < len(s) && s[last].from <= n.to {
		n = span{min(n.from, s[last].from), max(n.to, s[last].to)}
		last++
	}
	return slices.Replace(s, first, last, n)
}

// gaps returns the ranges of a file of the given size that s does not cover.
func (s spans) gaps(size int64) (gaps []span) {
	at := int64(0)
	for _, have := range s {
		if have.from > at {
			gaps = append(gaps, span{at, have.from})
		}
		at = have.to
	}
	if at < size {
		gaps = append(gaps, span{at, size})
	}
	return gaps
}

// size returns the number of bytes in all ranges.
func (s spans) size() (n int64) {
	for _, have := range s {
		n += have.size()
	}
	return n
}

// prefix returns the number of bytes present without a gap from the beginning.
func (s spans) prefix() int64 {
	if len(s) > 0 && s[0].from == 0 {
		return s[0].to
	}
	return 0
}
