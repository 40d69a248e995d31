package rx

import "math/bits"

// A ByteSet is a set of bytes: bit b%64 of word b/64 is byte b.
type ByteSet [4]uint64

// AllBytes is the set of all 256.
var AllBytes = ByteSet{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}

// BytesOf returns the set of the given bytes.
func BytesOf(bytes ...byte) ByteSet {
	var s ByteSet
	for _, b := range bytes {
		s[b/64] |= 1 << (b % 64)
	}
	return s
}

// ByteRange returns the set of the bytes from lo to hi, both included.
func ByteRange(lo, hi byte) ByteSet {
	var s ByteSet
	for b := int(lo); b <= int(hi); b++ {
		s[b/64] |= 1 << (b % 64)
	}
	return s
}

// Has reports whether b is in s.
func (s ByteSet) Has(b byte) bool { return s[b/64]>>(b%64)&1 != 0 }

// And returns the intersection of s and t.
func (s ByteSet) And(t ByteSet) ByteSet {
	return ByteSet{s[0] & t[0], s[1] & t[1], s[2] & t[2], s[3] & t[3]}
}

// Or returns the union of s and t.
func (s ByteSet) Or(t ByteSet) ByteSet {
	return ByteSet{s[0] | t[0], s[1] | t[1], s[2] | t[2], s[3] | t[3]}
}

// Not returns the complement of s.
func (s ByteSet) Not() ByteSet { return ByteSet{^s[0], ^s[1], ^s[2], ^s[3]} }

// IsEmpty reports whether s has no byte.
func (s ByteSet) IsEmpty() bool { return s == ByteSet{} }

// Len returns the number of bytes in s.
func (s ByteSet) Len() int {
	return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) + bits.OnesCount64(s[2]) + bits.OnesCount64(s[3])
}

// First returns the smallest byte of s. It panics if s is empty.
func (s ByteSet) First() byte {
	for i, w := range s {
		if w != 0 {
			return byte(64*i + bits.TrailingZeros64(w))
		}
	}
	panic("rx: First of an empty set")
}
