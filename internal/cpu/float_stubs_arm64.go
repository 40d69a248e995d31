package cpu

// dot4x4NEON writes to dst[t*8+r] the sum over i < n of w[r*stride+i]*x[t*stride+i] for 4 rows and
// 4 tokens. n is a positive multiple of 4.
//
//go:noescape
func dot4x4NEON(dst, w, x *float32, n, stride int)

// dot8x1NEON writes to dst[r] the sum over i < n of w[r*stride+i]*x[i] for 8 rows. n is
// a positive multiple of 4.
//
//go:noescape
func dot8x1NEON(dst, w, x *float32, n, stride int)

// dot8F32NEON, dot8F16NEON and dot8BF16NEON write to dst[r] the sum over i < n of w[r][i]*x[i] for
// 8 rows; row r of w begins at byte r*stride. n is a positive multiple of 4. They prefetch later
// elements of each row and, past the end of a row, the next eight rows.
//
//go:noescape
func dot8F32NEON(dst *float32, w *byte, x *float32, n, stride int)

//go:noescape
func dot8F16NEON(dst *float32, w *byte, x *float32, n, stride int)

//go:noescape
func dot8BF16NEON(dst *float32, w *byte, x *float32, n, stride int)

// f16NEON converts 8n float16, bf16NEON 8n bfloat16.
//
//go:noescape
func f16NEON(dst *float32, src *byte, n int)

//go:noescape
func bf16NEON(dst *float32, src *byte, n int)

// q8_0NEON and q4_0NEON write n blocks of 32.
//
//go:noescape
func q8_0NEON(dst *float32, src *byte, n int)

//go:noescape
func q4_0NEON(dst *float32, src *byte, n int)

// q4_KNEON, q5_KNEON and q6_KNEON write n blocks of 256.
//
//go:noescape
func q4_KNEON(dst *float32, src *byte, n int)

//go:noescape
func q5_KNEON(dst *float32, src *byte, n int)

//go:noescape
func q6_KNEON(dst *float32, src *byte, n int)
