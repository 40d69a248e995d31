package cpu

import "github.com/realizar/realizar/tensor"

var quantizedNEON = quantizedKernels{
	rows: genericRows, panels: 2,
	unpack: unpacksNEON(),
	multiply: multiplyBy(2*genericRows,
		width{4, multiplySigned32x4NEON, multiplyLow32x4NEON, multiplySigned16x4NEON, multiplyLow16x4NEON},
		width{2, multiplySigned32x2NEON, multiplyLow32x2NEON, multiplySigned16x2NEON, multiplyLow16x2NEON},
		width{1, multiplySigned32x1NEON, multiplyLow32x1NEON, multiplySigned16x1NEON, multiplyLow16x1NEON},
	),
}

// unpacksNEON are the generic ones where there is none in assembly: their panels are
// the same.
func unpacksNEON() map[tensor.DType]unpackFunc {
	all := genericUnpacks()
	all[tensor.Q4_0] = assemblyUnpack(unpackQ4_0NEON)
	all[tensor.IQ4_NL] = assemblyUnpack(unpackIQ4_NLNEON)
	all[tensor.Q8_0] = assemblyUnpack(unpackQ8_0NEON)
	all[tensor.Q4_K] = assemblyUnpack(unpackQ4_KNEON)
	all[tensor.Q5_K] = assemblyUnpack(unpackQ5_KNEON)
	all[tensor.Q6_K] = assemblyUnpack(unpackQ6_KNEON)
	return all
}
