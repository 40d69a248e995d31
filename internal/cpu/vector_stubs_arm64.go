package cpu

// quantizeNEON writes blocks blocks of the record of x.
//
//go:noescape
func quantizeNEON(record *byte, x *float32, blocks int)

// sumNEON returns the sum of n elements.
//
//go:noescape
func sumNEON(x *float32, n int) float64

// squaresNEON returns the sum of (x[i]-center)^2 over i < n.
//
//go:noescape
func squaresNEON(x *float32, n int, center float64) float64

// scaleNEON sets y to x*by*w, all of n elements.
//
//go:noescape
func scaleNEON(y *float32, x *float32, w *float32, n int, by float32)

// centerNEON sets y to (x-mean)*by*w + b, all of n elements.
//
//go:noescape
func centerNEON(y *float32, x *float32, w *float32, b *float32, n int, mean float64, by float64)

// rotateHalvesNEON rotates pairs (i, i+n), i < n, of heads rows, which are dim elements apart.
//
//go:noescape
func rotateHalvesNEON(y *float32, x *float32, cos *float32, sin *float32, n int, heads int, dim int)

// rotateNeighboursNEON rotates pairs (2i, 2i+1), 2i < n, of heads rows, which are dim elements
// apart. Both elements of a pair have the cosine and the sine.
//
//go:noescape
func rotateNeighboursNEON(y *float32, x *float32, cos *float32, sin *float32, n int, heads int, dim int)

// gluSiLUNEON sets y to activation(gate)*up, all of n elements.
//
//go:noescape
func gluSiLUNEON(y *float32, gate *float32, up *float32, n int)

// gluGELUNEON sets y to activation(gate)*up, all of n elements.
//
//go:noescape
func gluGELUNEON(y *float32, gate *float32, up *float32, n int)

// gluGELUTanhNEON sets y to activation(gate)*up, all of n elements.
//
//go:noescape
func gluGELUTanhNEON(y *float32, gate *float32, up *float32, n int)

// gluReLUNEON sets y to activation(gate)*up, all of n elements.
//
//go:noescape
func gluReLUNEON(y *float32, gate *float32, up *float32, n int)

// gluReLUSquaredNEON sets y to activation(gate)*up, all of n elements.
//
//go:noescape
func gluReLUSquaredNEON(y *float32, gate *float32, up *float32, n int)

// gluSigmoidNEON sets y to activation(gate)*up, all of n elements.
//
//go:noescape
func gluSigmoidNEON(y *float32, gate *float32, up *float32, n int)

// addNEON sets y to x+z, all of n elements.
//
//go:noescape
func addNEON(y *float32, x *float32, z *float32, n int)

// poisonNEON returns the sum of 0*x[i] over i < n: 0, or NaN if a value is not finite.
//
//go:noescape
func poisonNEON(x *float32, n int) float32

// maximaNEON writes the maximum of each block of 64 elements of x to dst, for at least one block.
// It returns 0, or NaN if a value is not finite.
//
//go:noescape
func maximaNEON(dst *float32, x *float32, blocks int) float32
