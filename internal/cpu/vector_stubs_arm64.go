package cpu

// quantizeNEON writes blocks blocks of the record of x.
//
//go:noescape
func quantizeNEON(record *byte, x *float32, blocks int)

// sumNEON is the sum of n elements.
//
//go:noescape
func sumNEON(x *float32, n int) float64

// squaresNEON is the sum of (x[i]-center)^2 over i < n.
//
//go:noescape
func squaresNEON(x *float32, n int, center float64) float64

// scaleNEON writes x*by*w to y, all of n elements.
//
//go:noescape
func scaleNEON(y *float32, x *float32, w *float32, n int, by float32)

// centerNEON writes (x-mean)*by*w + b to y, all of n elements.
//
//go:noescape
func centerNEON(y *float32, x *float32, w *float32, b *float32, n int, mean float64, by float64)

// rotateHalvesNEON turns pairs (i, i+n), i < n, of heads rows, dim elements apart.
//
//go:noescape
func rotateHalvesNEON(y *float32, x *float32, cos *float32, sin *float32, n int, heads int, dim int)

// rotateNeighboursNEON turns pairs (2i, 2i+1), 2i < n, of heads rows, dim elements apart.
// Cosine and sine stand at both places.
//
//go:noescape
func rotateNeighboursNEON(y *float32, x *float32, cos *float32, sin *float32, n int, heads int, dim int)

// gluSiLUNEON writes activation(gate)*up to y, all of n elements.
//
//go:noescape
func gluSiLUNEON(y *float32, gate *float32, up *float32, n int)

// gluGELUNEON writes activation(gate)*up to y, all of n elements.
//
//go:noescape
func gluGELUNEON(y *float32, gate *float32, up *float32, n int)

// gluGELUTanhNEON writes activation(gate)*up to y, all of n elements.
//
//go:noescape
func gluGELUTanhNEON(y *float32, gate *float32, up *float32, n int)

// gluReLUNEON writes activation(gate)*up to y, all of n elements.
//
//go:noescape
func gluReLUNEON(y *float32, gate *float32, up *float32, n int)

// gluReLUSquaredNEON writes activation(gate)*up to y, all of n elements.
//
//go:noescape
func gluReLUSquaredNEON(y *float32, gate *float32, up *float32, n int)

// gluSigmoidNEON writes activation(gate)*up to y, all of n elements.
//
//go:noescape
func gluSigmoidNEON(y *float32, gate *float32, up *float32, n int)

// addNEON writes x+z to y, all of n elements.
//
//go:noescape
func addNEON(y *float32, x *float32, z *float32, n int)

// poisonNEON is the sum of 0*x[i] over i < n: 0, or NaN where a value is not finite.
//
//go:noescape
func poisonNEON(x *float32, n int) float32

// maximaNEON writes the largest of each 64 elements of x, of one block at least, to dst
// and returns 0, or NaN where a value is not finite.
//
//go:noescape
func maximaNEON(dst *float32, x *float32, blocks int) float32
