package fetch

import (
	"testing"

	"pgregory.net/rapid"
)

// A spans value holds the same bytes as a plain set of bytes does.
func TestSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 40
		var s spans
		var have [size]bool
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			from := rapid.Int64Range(0, size).Draw(t, "from")
			n := span{from, min(size, from+rapid.Int64Range(0, 10).Draw(t, "size"))}
			s = s.add(n)
			for i := n.from; i < n.to; i++ {
				have[i] = true
			}
		}
		var again [size]bool
		last := int64(-1)
		for _, h := range s {
			if h.from <= last || h.size() <= 0 {
				t.Fatalf("%v touch each other or are not sorted", s)
			}
			last = h.to
			for i := h.from; i < h.to; i++ {
				again[i] = true
			}
		}
		if again != have {
			t.Fatalf("%v hold the wrong bytes", s)
		}
		missing := int64(size)
		for _, g := range s.gaps(size) {
			for i := g.from; i < g.to; i++ {
				if have[i] {
					t.Fatalf("%v is no gap of %v", g, s)
				}
			}
			missing -= g.size()
		}
		if missing != s.size() {
			t.Fatalf("gaps and %v do not add up", s)
		}
		prefix := int64(0)
		for prefix < size && have[prefix] {
			prefix++
		}
		if s.prefix() != prefix {
			t.Fatalf("the prefix of %v is %d", s, s.prefix())
		}
	})
}

// A truncated or altered record does not parse.
func TestNotes(t *testing.T) {
	line := noteText(span{12, 345}, 0xdeadbeef)
	if s, sum, ok := parseNote(line[:len(line)-1]); !ok || s != (span{12, 345}) || sum != 0xdeadbeef {
		t.Errorf("%q is read as %v, %x, %v", line, s, sum, ok)
	}
	for i := range len(line) - 2 {
		if s, _, ok := parseNote(line[:i]); ok {
			t.Errorf("%q is read as %v", line[:i], s)
		}
		changed := []byte(line[:len(line)-1])
		changed[i] ^= 1
		if s, _, ok := parseNote(string(changed)); ok && s != (span{12, 345}) {
			t.Errorf("%q is read as %v", changed, s)
		}
	}
}
