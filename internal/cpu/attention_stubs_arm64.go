package cpu

// scoresF32NEON and the next three set score [rows, n] to the products of queries and keys. q is
// [dim, rows] with rows qStride bytes apart, k is [dim, n] with rows stride bytes apart. Sums run
// over dim in ascending order. n is rounded up to a multiple of 16 for reads and writes. They
// prefetch data from next on.
//
//go:noescape
func scoresF32NEON(score, q *float32, k, scales, next *byte, dim, stride, n, rows, qStride int)

//go:noescape
func scoresF16NEON(score, q *float32, k, scales, next *byte, dim, stride, n, rows, qStride int)

//go:noescape
func scoresQ8NEON(score, q *float32, k, scales, next *byte, dim, stride, n, rows, qStride int)

//go:noescape
func scoresF8NEON(score, q *float32, k, scales, next *byte, dim, stride, n, rows, qStride int)

// weightedF32NEON and the next three add to sum [rows, dim] the n values v [n, dim] times their
// weights [rows, n], in ascending order. Rows of v are stride bytes apart, those of sum sumStride
// bytes. dim is rounded up to a multiple of 16 for reads and writes. They prefetch data from next
// on.
//
//go:noescape
func weightedF32NEON(sum, weight *float32, v, scales, next *byte, dim, stride, n, rows, sumStride int)

//go:noescape
func weightedF16NEON(sum, weight *float32, v, scales, next *byte, dim, stride, n, rows, sumStride int)

//go:noescape
func weightedQ8NEON(sum, weight *float32, v, scales, next *byte, dim, stride, n, rows, sumStride int)

//go:noescape
func weightedF8NEON(sum, weight *float32, v, scales, next *byte, dim, stride, n, rows, sumStride int)

// softWeightsNEON replaces each of rows rows of n scores by exp(score - top), where top is the
// row's largest score, and sets total to their sum. n is a positive multiple of 16.
//
//go:noescape
func softWeightsNEON(score *float32, n, rows int, top, total *float32)

// blendNEON sets y [n] to y*a + x*b. n is a positive multiple of 16.
//
//go:noescape
func blendNEON(y, x *float32, n int, a, b float32)

// scaleRowNEON sets y [n] to x*a.
//
//go:noescape
func scaleRowNEON(y, x *float32, n int, a float32)

// halveNEON sets y [n] to x in float16, rounded to nearest even.
//
//go:noescape
func halveNEON(y *uint16, x *float32, n int)

// positivesNEON sets sum [n] to the sum over rows, in ascending order, of the positive part of score
// [rows, n] times weight [rows]. n is rounded up to a multiple of 16, in what is read and written. NaN
// stays NaN.
//
//go:noescape
func positivesNEON(sum, score, weight *float32, n, rows int)
