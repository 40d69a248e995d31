package cpu

import "github.com/realizar/realizar/tensor"

var quantizedAVX512 = quantizedKernels{lanes: 16, words: assemblyWords(interleaveAVX512), products: map[tensor.DType]productFunc{
	tensor.Q4_0:   productBy(16, width{12, 2, productQ4_0x12AVX512}, width{8, 1, productQ4_0x8AVX512}, width{4, 1, productQ4_0x4AVX512}, width{2, 1, productQ4_0x2AVX512}, width{1, 1, productQ4_0x1AVX512}),
	tensor.Q4_1:   productBy(16, width{12, 2, productQ4_1x12AVX512}, width{8, 1, productQ4_1x8AVX512}, width{4, 1, productQ4_1x4AVX512}, width{2, 1, productQ4_1x2AVX512}, width{1, 1, productQ4_1x1AVX512}),
	tensor.Q5_0:   productBy(16, width{12, 2, productQ5_0x12AVX512}, width{8, 1, productQ5_0x8AVX512}, width{4, 1, productQ5_0x4AVX512}, width{2, 1, productQ5_0x2AVX512}, width{1, 1, productQ5_0x1AVX512}),
	tensor.Q5_1:   productBy(16, width{12, 2, productQ5_1x12AVX512}, width{8, 1, productQ5_1x8AVX512}, width{4, 1, productQ5_1x4AVX512}, width{2, 1, productQ5_1x2AVX512}, width{1, 1, productQ5_1x1AVX512}),
	tensor.Q8_0:   productBy(16, width{12, 2, productQ8_0x12AVX512}, width{8, 1, productQ8_0x8AVX512}, width{4, 1, productQ8_0x4AVX512}, width{2, 1, productQ8_0x2AVX512}, width{1, 1, productQ8_0x1AVX512}),
	tensor.IQ4_NL: productBy(16, width{12, 2, productIQ4_NLx12AVX512}, width{8, 1, productIQ4_NLx8AVX512}, width{4, 1, productIQ4_NLx4AVX512}, width{2, 1, productIQ4_NLx2AVX512}, width{1, 1, productIQ4_NLx1AVX512}),
	tensor.MXFP4:  productBy(16, width{12, 2, productMXFP4x12AVX512}, width{8, 1, productMXFP4x8AVX512}, width{4, 1, productMXFP4x4AVX512}, width{2, 1, productMXFP4x2AVX512}, width{1, 1, productMXFP4x1AVX512}),
	tensor.Q2_K:   productBy(16, width{12, 1, productQ2_Kx12AVX512}, width{8, 1, productQ2_Kx8AVX512}, width{4, 1, productQ2_Kx4AVX512}, width{2, 1, productQ2_Kx2AVX512}, width{1, 1, productQ2_Kx1AVX512}),
	tensor.Q3_K:   productBy(16, width{12, 1, productQ3_Kx12AVX512}, width{8, 1, productQ3_Kx8AVX512}, width{4, 1, productQ3_Kx4AVX512}, width{2, 1, productQ3_Kx2AVX512}, width{1, 1, productQ3_Kx1AVX512}),
	tensor.Q4_K:   productBy(16, width{12, 1, productQ4_Kx12AVX512}, width{8, 1, productQ4_Kx8AVX512}, width{4, 1, productQ4_Kx4AVX512}, width{2, 1, productQ4_Kx2AVX512}, width{1, 1, productQ4_Kx1AVX512}),
	tensor.Q5_K:   productBy(16, width{12, 1, productQ5_Kx12AVX512}, width{8, 1, productQ5_Kx8AVX512}, width{4, 1, productQ5_Kx4AVX512}, width{2, 1, productQ5_Kx2AVX512}, width{1, 1, productQ5_Kx1AVX512}),
	tensor.Q6_K:   productBy(16, width{12, 1, productQ6_Kx12AVX512}, width{8, 1, productQ6_Kx8AVX512}, width{4, 1, productQ6_Kx4AVX512}, width{2, 1, productQ6_Kx2AVX512}, width{1, 1, productQ6_Kx1AVX512}),
	tensor.IQ4_XS: productBy(16, width{12, 1, productIQ4_XSx12AVX512}, width{8, 1, productIQ4_XSx8AVX512}, width{4, 1, productIQ4_XSx4AVX512}, width{2, 1, productIQ4_XSx2AVX512}, width{1, 1, productIQ4_XSx1AVX512}),
}}

var quantizedAVX2 = quantizedKernels{lanes: 8, words: assemblyWords(interleaveAVX2), products: map[tensor.DType]productFunc{
	tensor.Q4_0:   productBy(8, width{4, 1, productQ4_0x4AVX2}, width{2, 1, productQ4_0x2AVX2}, width{1, 1, productQ4_0x1AVX2}),
	tensor.Q4_1:   productBy(8, width{4, 1, productQ4_1x4AVX2}, width{2, 1, productQ4_1x2AVX2}, width{1, 1, productQ4_1x1AVX2}),
	tensor.Q5_0:   productBy(8, width{4, 1, productQ5_0x4AVX2}, width{2, 1, productQ5_0x2AVX2}, width{1, 1, productQ5_0x1AVX2}),
	tensor.Q5_1:   productBy(8, width{4, 1, productQ5_1x4AVX2}, width{2, 1, productQ5_1x2AVX2}, width{1, 1, productQ5_1x1AVX2}),
	tensor.Q8_0:   productBy(8, width{4, 1, productQ8_0x4AVX2}, width{2, 1, productQ8_0x2AVX2}, width{1, 1, productQ8_0x1AVX2}),
	tensor.IQ4_NL: productBy(8, width{4, 1, productIQ4_NLx4AVX2}, width{2, 1, productIQ4_NLx2AVX2}, width{1, 1, productIQ4_NLx1AVX2}),
	tensor.MXFP4:  productBy(8, width{4, 1, productMXFP4x4AVX2}, width{2, 1, productMXFP4x2AVX2}, width{1, 1, productMXFP4x1AVX2}),
	tensor.Q2_K:   productBy(8, width{4, 1, productQ2_Kx4AVX2}, width{2, 1, productQ2_Kx2AVX2}, width{1, 1, productQ2_Kx1AVX2}),
	tensor.Q3_K:   productBy(8, width{4, 1, productQ3_Kx4AVX2}, width{2, 1, productQ3_Kx2AVX2}, width{1, 1, productQ3_Kx1AVX2}),
	tensor.Q4_K:   productBy(8, width{4, 1, productQ4_Kx4AVX2}, width{2, 1, productQ4_Kx2AVX2}, width{1, 1, productQ4_Kx1AVX2}),
	tensor.Q5_K:   productBy(8, width{4, 1, productQ5_Kx4AVX2}, width{2, 1, productQ5_Kx2AVX2}, width{1, 1, productQ5_Kx1AVX2}),
	tensor.Q6_K:   productBy(8, width{4, 1, productQ6_Kx4AVX2}, width{2, 1, productQ6_Kx2AVX2}, width{1, 1, productQ6_Kx1AVX2}),
	tensor.IQ4_XS: productBy(8, width{4, 1, productIQ4_XSx4AVX2}, width{2, 1, productIQ4_XSx2AVX2}, width{1, 1, productIQ4_XSx1AVX2}),
}}
