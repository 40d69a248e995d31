package tokenizer

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// charsmap is a precompiled charsmap of SentencePiece. The texts to replace form a double array
// (Aoe, "An Efficient Digital Search Algorithm by Using a Double-Array Structure", 1989) whose
// nodes are joined by exclusive or. The replacements are strings that each end with a zero byte.
type charsmap struct {
	units        []uint32
	replacements string
}

// maxCharsmap is the largest size of a charsmap in bytes, ten times that of published models.
const maxCharsmap = 4 << 20

// newCharsmap returns the charsmap in data. It adds to times how much the charsmap may multiply the
// length of a text.
func newCharsmap(data []byte, times *growth) (*charsmap, error) {
	if len(data) < 4 {
		return nil, fmt.Errorf("%w: a charsmap of %d bytes", ErrInvalid, len(data))
	}
	if len(data) > maxCharsmap {
		return nil, fmt.Errorf("%w: a charsmap of %d bytes, more than %d", ErrUnsupported, len(data), maxCharsmap)
	}
	size := int64(binary.LittleEndian.Uint32(data))
	data = data[4:]
	if size > int64(len(data)) || size < 4 {
		return nil, fmt.Errorf("%w: a charsmap of %d bytes whose first part has %d", ErrInvalid, len(data)+4, size)
	}
	c := &charsmap{units: make([]uint32, size/4), replacements: string(data[size:])}
	for i := range c.units {
		c.units[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	if !utf8.ValidString(c.replacements) {
		return nil, fmt.Errorf("%w: a charsmap whose replacements are not UTF-8", ErrInvalid)
	}
	return c, c.measure(times)
}

// A unit holds the byte that leads to it, the offset of its children, and whether a text ends at
// it.
func unitBase(unit uint32) uint32  { return unit >> 10 << (unit & (1 << 9) >> 6) }
func unitLabel(unit uint32) uint32 { return unit & (1<<31 | 0xFF) }
func unitEnds(unit uint32) bool    { return unit>>8&1 != 0 }
func unitValue(unit uint32) uint32 { return unit &^ (1 << 31) }

// step follows b from the children at at. It returns the place of the next children and whether a
// text ends there; ok is false if there is no such child.
func (c *charsmap) step(at uint32, b byte) (next uint32, ends, ok bool) {
	at ^= uint32(b)
	if b == 0 || at >= uint32(len(c.units)) || unitLabel(c.units[at]) != uint32(b) {
		return 0, false, false
	}
	return at ^ unitBase(c.units[at]), unitEnds(c.units[at]), true
}

// replacement returns the replacement of the text that ends at place at.
func (c *charsmap) replacement(at uint32) (string, bool) {
	if at >= uint32(len(c.units)) {
		return "", false
	}
	value := unitValue(c.units[at])
	if value > uint32(len(c.replacements)) {
		return "", false
	}
	text, _, _ := strings.Cut(c.replacements[value:], "\x00")
	return text, true
}

// measure adds to times how much the charsmap may multiply the length of a text. It visits each
// place once.
func (c *charsmap) measure(times *growth) error {
	type place struct{ at, depth uint32 }
	seen := make([]bool, len(c.units)+256) // no unit can be reached from places beyond this
	todo := []place{{unitBase(c.units[0]), 0}}
	longest, of := 1, 1
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		for b := 1; b < 256; b++ {
			next, ends, ok := c.step(p.at, byte(b))
			if !ok {
				continue
			}
			if text, ok := c.replacement(next); ok && ends && len(text)*of > longest*int(p.depth+1) {
				longest, of = len(text), int(p.depth+1)
			}
			if int64(next) < int64(len(seen)) && !seen[next] {
				seen[next] = true
				todo = append(todo, place{next, p.depth + 1})
			}
		}
	}
	return times.multiply(longest, of)
}

// shortest returns the replacement of the shortest prefix of text that the charsmap replaces.
func (c *charsmap) shortest(text string) (string, bool) {
	at := unitBase(c.units[0])
	for i := range len(text) {
		next, ends, ok := c.step(at, text[i])
		if !ok {
			break
		}
		if at = next; ends {
			return c.replacement(at)
		}
	}
	return "", false
}

// longest returns the replacement of the longest prefix of text that the charsmap replaces, and the
// length of that prefix, 0 if there is none.
func (c *charsmap) longest(text string) (replacement string, n int) {
	at := unitBase(c.units[0])
	for i := range len(text) {
		next, ends, ok := c.step(at, text[i])
		if !ok {
			break
		}
		if at = next; ends {
			if r, ok := c.replacement(at); ok {
				replacement, n = r, i+1
			}
		}
	}
	return replacement, n
}

// maxCluster is the length in bytes from which on a grapheme cluster is not looked up as a whole.
const maxCluster = 6

// apply implements normalStep as Hugging Face tokenizers do, which differs from SentencePiece. If a
// prefix of a short grapheme cluster has a replacement, the replacement takes the place of the
// whole cluster. All other clusters are replaced character by character.
func (c *charsmap) apply(w *work, text string, marks []bool) (string, []bool) {
	var out strings.Builder
	out.Grow(len(text))
	var outMarks []bool
	put := func(to string, from, end int) {
		out.WriteString(to)
		if marks != nil {
			outMarks = repeatMark(outMarks, anyMark(marks[from:end]), len(to))
		}
	}
	for i := 0; i < len(text); {
		w.step(1)
		n := 1
		if text[i] >= utf8.RuneSelf || i+1 < len(text) && (text[i+1] >= utf8.RuneSelf || text[i] == '\r') {
			cluster, _, _, _ := uniseg.FirstGraphemeClusterInString(text[i:], -1)
			n = len(cluster)
		}
		end := i + n
		if n < maxCluster {
			if to, ok := c.shortest(text[i:end]); ok {
				put(to, i, end)
				i = end
				continue
			}
		}
		for i < end {
			_, size := utf8.DecodeRuneInString(text[i:])
			to, ok := c.shortest(text[i : i+size])
			if !ok {
				to = text[i : i+size]
			}
			put(to, i, i+size)
			i += size
			w.step(size)
		}
	}
	if marks != nil && outMarks == nil {
		outMarks = []bool{}
	}
	return out.String(), outMarks
}
