package cpu

// interleaveNEON interleaves words words of 4 rows, which are stride bytes apart.
//
//go:noescape
func interleaveNEON(to, from *byte, stride, words int)
