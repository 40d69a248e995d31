package cpu

// The functions below turn a number of blocks of 4 rows of w, stride bytes apart, into
// a panel, and prefetch as many bytes from next.

//go:noescape
func unpackQ4_0NEON(panel *byte, scales *float32, w *byte, stride, blocks int, next *byte)

//go:noescape
func unpackIQ4_NLNEON(panel *byte, scales *float32, w *byte, stride, blocks int, next *byte)

//go:noescape
func unpackQ8_0NEON(panel *byte, scales *float32, w *byte, stride, blocks int, next *byte)

//go:noescape
func unpackQ4_KNEON(panel *byte, scales *float32, w *byte, stride, blocks int, next *byte)

//go:noescape
func unpackQ5_KNEON(panel *byte, scales *float32, w *byte, stride, blocks int, next *byte)

//go:noescape
func unpackQ6_KNEON(panel *byte, scales *float32, w *byte, stride, blocks int, next *byte)
