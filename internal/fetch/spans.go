package fetch

import "slices"

// A span is bytes of a file, from one up to another that is not part of it.
type span struct{ from, to int64 }

func (s span) size() int64 { return s.to - s.from }

// Spans are bytes of a file: apart from each other, and in order.
type spans []span

// add puts bytes to the others.
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

// gaps are the bytes of a file of that size that are not there.
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

// size is how many bytes there are.
func (s spans) size() (n int64) {
	for _, have := range s {
		n += have.size()
	}
	return n
}

// prefix is how many bytes there are from the beginning on.
func (s spans) prefix() int64 {
	if len(s) > 0 && s[0].from == 0 {
		return s[0].to
	}
	return 0
}
