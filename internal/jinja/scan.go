package jinja

import (
	"cmp"
	"strings"
	"unicode/utf8"
)

// All reading of strings that templates can make long is in this file. Each function charges the
// meter stretch by stretch for what it has read: a search that ends soon costs little, and a long
// one can be stopped.

const (
	// stretch is the number of bytes that are copied, searched or compared
	// at a time.
	stretch = 1 << 15
	// charStretch is the number of bytes whose characters are looked at one
	// by one at a time.
	charStretch = 1 << 11
)

// stretchEnd returns the end of the stretch of up to n bytes that begins at i. The end is between
// two characters.
func stretchEnd(s string, i, n int) int {
	end := i + n
	if end >= len(s) {
		return len(s)
	}
	for end > i+1 && !utf8.RuneStart(s[end]) {
		end--
	}
	return end
}

// index is strings.Index.
func (m *meter) index(s, sub string) int {
	window := max(stretch, len(sub))
	for i := 0; ; i += window {
		end := min(i+window+len(sub), len(s))
		if at := strings.Index(s[i:end], sub); at >= 0 {
			m.scan(at + len(sub))
			return i + at
		}
		m.scan(end - i)
		if end == len(s) {
			return -1
		}
	}
}

// lastIndex is strings.LastIndex.
func (m *meter) lastIndex(s, sub string) int {
	window := max(stretch, len(sub))
	for end := len(s); ; end -= window {
		i := max(0, end-window-len(sub))
		if at := strings.LastIndex(s[i:end], sub); at >= 0 {
			m.scan(end - i - at)
			return i + at
		}
		m.scan(end - i + len(sub))
		if i == 0 {
			return -1
		}
	}
}

// countText is strings.Count.
func (m *meter) countText(s, sub string) int {
	n := 0
	switch len(sub) {
	case 0:
		return m.runeCount(s) + 1
	case 1:
		for i := 0; i < len(s); i += stretch {
			end := min(i+stretch, len(s))
			m.scan(end - i)
			n += strings.Count(s[i:end], sub)
		}
		return n
	}
	for {
		at := m.index(s, sub)
		if at < 0 {
			return n
		}
		n++
		s = s[at+len(sub):]
	}
}

// compareText is strings.Compare. It reads growing stretches, since most strings differ early.
func (m *meter) compareText(a, b string) int {
	n := min(len(a), len(b))
	for i, size := 0, 64; i < n; size = min(2*size, stretch) {
		end := min(i+size, n)
		m.scan(end - i)
		if c := strings.Compare(a[i:end], b[i:end]); c != 0 {
			return c
		}
		i = end
	}
	return cmp.Compare(len(a), len(b))
}

// sameText reports whether a and b are equal.
func (m *meter) sameText(a, b string) bool {
	return len(a) == len(b) && m.compareText(a, b) == 0
}

func (m *meter) isASCII(s string) bool {
	for i := 0; i < len(s); i += stretch {
		end := min(i+stretch, len(s))
		m.scan(end - i)
		if !isASCII(s[i:end]) {
			return false
		}
	}
	return true
}

func (m *meter) runeCount(s string) int {
	n := 0
	for i := 0; i < len(s); {
		end := stretchEnd(s, i, stretch)
		m.scan(2 * (end - i))
		n += utf8.RuneCountInString(s[i:end])
		i = end
	}
	return n
}

// runeOffset returns the byte offset of the n-th character of s, n being
// between 0 and the number of characters.
func (m *meter) runeOffset(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	i := 0
	for n > 0 && i < len(s) {
		end := stretchEnd(s, i, min(stretch, n*utf8.UTFMax))
		m.scan(2 * (end - i))
		if have := utf8.RuneCountInString(s[i:end]); have <= n {
			n -= have
			i = end
			continue
		}
		if i+n <= end && isASCII(s[i:i+n]) {
			return i + n
		}
		for ; n > 0; n-- {
			_, size := utf8.DecodeRuneInString(s[i:])
			i += size
		}
	}
	return i
}

// indexFunc is strings.IndexFunc. Each byte counts as a step.
func (m *meter) indexFunc(s string, f func(rune) bool) int {
	for i := 0; i < len(s); {
		end := stretchEnd(s, i, charStretch)
		if at := strings.IndexFunc(s[i:end], f); at >= 0 {
			m.step(at + 1)
			return i + at
		}
		m.step(end - i)
		i = end
	}
	return -1
}

// lastIndexFunc is strings.LastIndexFunc. Each byte counts as a step.
func (m *meter) lastIndexFunc(s string, f func(rune) bool) int {
	for end := len(s); end > 0; {
		i := max(0, end-charStretch)
		for i > 0 && !utf8.RuneStart(s[i]) {
			i--
		}
		if at := strings.LastIndexFunc(s[i:end], f); at >= 0 {
			m.step(end - i - at)
			return i + at
		}
		m.step(end - i)
		end = i
	}
	return -1
}

// skip returns the offset of the first character of s for which f is false, or the length of s.
func (m *meter) skip(s string, f func(rune) bool) int {
	if at := m.indexFunc(s, func(r rune) bool { return !f(r) }); at >= 0 {
		return at
	}
	return len(s)
}

// skipBack returns the end of the last character of s for which f is false, or 0.
func (m *meter) skipBack(s string, f func(rune) bool) int {
	at := m.lastIndexFunc(s, func(r rune) bool { return !f(r) })
	if at < 0 {
		return 0
	}
	_, n := utf8.DecodeRuneInString(s[at:])
	return at + n
}

// every reports whether s is not empty and f holds for all of it.
func (m *meter) every(s string, f func(rune) bool) bool {
	return s != "" && m.skip(s, f) == len(s)
}

// trimSpace returns the bounds of s without the white space around it.
func (m *meter) trimSpace(s string) (int, int) {
	j := m.skipBack(s, isSpace)
	return m.skip(s[:j], isSpace), j
}
