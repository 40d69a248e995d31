package cpu

import "github.com/realizar/realizar/tensor"

// neonLanes are those of one register: with more, half as many tokens would share
// the unpacking of a word.
const neonLanes = 4

var quantizedNEON = quantizedKernels{lanes: neonLanes, words: assemblyWords(interleaveNEON), products: map[tensor.DType]productFunc{
	tensor.Q4_0:   productBy(neonLanes, width{8, 1, productQ4_0x8NEON}, width{4, 1, productQ4_0x4NEON}, width{2, 1, productQ4_0x2NEON}, width{1, 1, productQ4_0x1NEON}),
	tensor.Q4_1:   productBy(neonLanes, width{8, 1, productQ4_1x8NEON}, width{4, 1, productQ4_1x4NEON}, width{2, 1, productQ4_1x2NEON}, width{1, 1, productQ4_1x1NEON}),
	tensor.Q5_0:   productBy(neonLanes, width{8, 1, productQ5_0x8NEON}, width{4, 1, productQ5_0x4NEON}, width{2, 1, productQ5_0x2NEON}, width{1, 1, productQ5_0x1NEON}),
	tensor.Q5_1:   productBy(neonLanes, width{8, 1, productQ5_1x8NEON}, width{4, 1, productQ5_1x4NEON}, width{2, 1, productQ5_1x2NEON}, width{1, 1, productQ5_1x1NEON}),
	tensor.Q8_0:   productBy(neonLanes, width{8, 1, productQ8_0x8NEON}, width{4, 1, productQ8_0x4NEON}, width{2, 1, productQ8_0x2NEON}, width{1, 1, productQ8_0x1NEON}),
	tensor.IQ4_NL: productBy(neonLanes, width{8, 1, productIQ4_NLx8NEON}, width{4, 1, productIQ4_NLx4NEON}, width{2, 1, productIQ4_NLx2NEON}, width{1, 1, productIQ4_NLx1NEON}),
	tensor.MXFP4:  productBy(neonLanes, width{8, 1, productMXFP4x8NEON}, width{4, 1, productMXFP4x4NEON}, width{2, 1, productMXFP4x2NEON}, width{1, 1, productMXFP4x1NEON}),
	tensor.Q2_K:   productBy(neonLanes, width{8, 1, productQ2_Kx8NEON}, width{4, 1, productQ2_Kx4NEON}, width{2, 1, productQ2_Kx2NEON}, width{1, 1, productQ2_Kx1NEON}),
	tensor.Q3_K:   productBy(neonLanes, width{8, 1, productQ3_Kx8NEON}, width{4, 1, productQ3_Kx4NEON}, width{2, 1, productQ3_Kx2NEON}, width{1, 1, productQ3_Kx1NEON}),
	tensor.Q4_K:   productBy(neonLanes, width{8, 1, productQ4_Kx8NEON}, width{4, 1, productQ4_Kx4NEON}, width{2, 1, productQ4_Kx2NEON}, width{1, 1, productQ4_Kx1NEON}),
	tensor.Q5_K:   productBy(neonLanes, width{8, 1, productQ5_Kx8NEON}, width{4, 1, productQ5_Kx4NEON}, width{2, 1, productQ5_Kx2NEON}, width{1, 1, productQ5_Kx1NEON}),
	tensor.Q6_K:   productBy(neonLanes, width{8, 1, productQ6_Kx8NEON}, width{4, 1, productQ6_Kx4NEON}, width{2, 1, productQ6_Kx2NEON}, width{1, 1, productQ6_Kx1NEON}),
	tensor.IQ4_XS: productBy(neonLanes, width{8, 1, productIQ4_XSx8NEON}, width{4, 1, productIQ4_XSx4NEON}, width{2, 1, productIQ4_XSx2NEON}, width{1, 1, productIQ4_XSx1NEON}),
}}
