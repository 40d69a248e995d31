package cpu

// scoresF32NEON and the next two set score [rows, n] to the products of queries and
// keys. q is [dim, rows], its rows qStride bytes apart, k is [dim, n], its rows stride
// bytes apart; sums run over dim in ascending order. n is rounded up to a multiple of
// 16, in what is read and written. What lies from next on is fetched ahead.
//
//go:noescape
func scoresF32NEON(score, q *float32, k, scales, next *byte, dim, stride, n, rows, qStride int)

//go:noescape
func scoresF16NEON(score, q *float32, k, scales, next *byte, dim, stride, n, rows, qStride int)

//go:noescape
func scoresQ8NEON(score, q *float32, k, scales, next *byte, dim, stride, n, rows, qStride int)

// weightedF32NEON and the next two add to sum [rows, dim] the n values v [n, dim] by
// their weights [rows, n], in ascending order. Rows of v lie stride bytes apart, those
// of sum sumStride bytes; dim is rounded up to a multiple of 16, in what is read and
// written. What lies from next on is fetched ahead.
//
//go:noescape
func weightedF32NEON(sum, weight *float32, v, scales, next *byte, dim, stride, n, rows, sumStride int)

//go:noescape
func weightedF16NEON(sum, weight *float32, v, scales, next *byte, dim, stride, n, rows, sumStride int)

//go:noescape
func weightedQ8NEON(sum, weight *float32, v, scales, next *byte, dim, stride, n, rows, sumStride int)

// softWeightsNEON replaces each of rows rows of n scores by exp(score - top), top
// being the row's largest, and sets total to their sum. n is a positive multiple of 16.
//
//go:noescape
func softWeightsNEON(score *float32, n, rows int, top, total *float32)

// blendNEON sets y [n] to y a + x b. n is a positive multiple of 16.
//
//go:noescape
func blendNEON(y, x *float32, n int, a, b float32)

// scaleRowNEON sets y [n] to x a.
//
//go:noescape
func scaleRowNEON(y, x *float32, n int, a float32)

// halveNEON sets y [n] to x as float16, rounded to the nearest, to even where two are.
//
//go:noescape
func halveNEON(y *uint16, x *float32, n int)
