package cpu

// interleaveNEON writes a number of words of 4 rows stride bytes apart, a word of every
// row after the other.
//
//go:noescape
func interleaveNEON(to, from *byte, stride, words int)
