package cpu

import "github.com/realizar/realizar/tensor"

// assemblyFused is a kernel with the slices of package cpu.
func assemblyFused(f func(totals, scales *float32, x, w *byte, stride, blocks, groups int, next *byte)) fusedFunc {
	return func(totals, scales []float32, x, w []byte, stride, blocks, groups int, next *byte) {
		f(&totals[0], &scales[0], &x[0], &w[0], stride, blocks, groups, next)
	}
}

var quantizedAVX512 = quantizedKernels{
	rows: 16, panels: 2,
	unpack: map[tensor.DType]unpackFunc{
		tensor.Q4_0:   assemblyUnpack(unpackQ4_0AVX512),
		tensor.Q4_1:   assemblyUnpack(unpackQ4_1AVX512),
		tensor.Q5_0:   assemblyUnpack(unpackQ5_0AVX512),
		tensor.Q5_1:   assemblyUnpack(unpackQ5_1AVX512),
		tensor.Q8_0:   assemblyUnpack(unpackQ8_0AVX512),
		tensor.IQ4_NL: assemblyUnpack(unpackIQ4_NLAVX512),
		tensor.MXFP4:  assemblyUnpack(unpackMXFP4AVX512),
		tensor.Q2_K:   assemblyUnpack(unpackQ2_KAVX512),
		tensor.Q3_K:   assemblyUnpack(unpackQ3_KAVX512),
		tensor.Q4_K:   assemblyUnpack(unpackQ4_KAVX512),
		tensor.Q5_K:   assemblyUnpack(unpackQ5_KAVX512),
		tensor.Q6_K:   assemblyUnpack(unpackQ6_KAVX512),
		tensor.IQ4_XS: assemblyUnpack(unpackIQ4_XSAVX512),
	},
	fused: map[tensor.DType]fusedFunc{
		tensor.Q4_0:   assemblyFused(fusedQ4_0AVX512),
		tensor.Q4_1:   assemblyFused(fusedQ4_1AVX512),
		tensor.Q5_0:   assemblyFused(fusedQ5_0AVX512),
		tensor.Q5_1:   assemblyFused(fusedQ5_1AVX512),
		tensor.Q8_0:   assemblyFused(fusedQ8_0AVX512),
		tensor.IQ4_NL: assemblyFused(fusedIQ4_NLAVX512),
		tensor.MXFP4:  assemblyFused(fusedMXFP4AVX512),
		tensor.Q2_K:   assemblyFused(fusedQ2_KAVX512),
		tensor.Q3_K:   assemblyFused(fusedQ3_KAVX512),
		tensor.Q4_K:   assemblyFused(fusedQ4_KAVX512),
		tensor.Q5_K:   assemblyFused(fusedQ5_KAVX512),
		tensor.Q6_K:   assemblyFused(fusedQ6_KAVX512),
		tensor.IQ4_XS: assemblyFused(fusedIQ4_XSAVX512),
	},
	multiply: multiplyBy(32,
		width{6, multiplySigned32x6AVX512, multiplyLow32x6AVX512, multiplySigned16x6AVX512, multiplyLow16x6AVX512},
		width{4, multiplySigned32x4AVX512, multiplyLow32x4AVX512, multiplySigned16x4AVX512, multiplyLow16x4AVX512},
		width{2, multiplySigned32x2AVX512, multiplyLow32x2AVX512, multiplySigned16x2AVX512, multiplyLow16x2AVX512},
		width{1, multiplySigned32x1AVX512, multiplyLow32x1AVX512, multiplySigned16x1AVX512, multiplyLow16x1AVX512},
	),
}

var quantizedAVX2 = quantizedKernels{
	rows: 8, panels: 1,
	unpack: map[tensor.DType]unpackFunc{
		tensor.Q4_0:   assemblyUnpack(unpackQ4_0AVX2),
		tensor.Q4_1:   assemblyUnpack(unpackQ4_1AVX2),
		tensor.Q5_0:   assemblyUnpack(unpackQ5_0AVX2),
		tensor.Q5_1:   assemblyUnpack(unpackQ5_1AVX2),
		tensor.Q8_0:   assemblyUnpack(unpackQ8_0AVX2),
		tensor.IQ4_NL: assemblyUnpack(unpackIQ4_NLAVX2),
		tensor.MXFP4:  assemblyUnpack(unpackMXFP4AVX2),
		tensor.Q2_K:   assemblyUnpack(unpackQ2_KAVX2),
		tensor.Q3_K:   assemblyUnpack(unpackQ3_KAVX2),
		tensor.Q4_K:   assemblyUnpack(unpackQ4_KAVX2),
		tensor.Q5_K:   assemblyUnpack(unpackQ5_KAVX2),
		tensor.Q6_K:   assemblyUnpack(unpackQ6_KAVX2),
		tensor.IQ4_XS: assemblyUnpack(unpackIQ4_XSAVX2),
	},
	multiply: multiplyBy(8,
		width{4, multiplySigned32x4AVX2, multiplyLow32x4AVX2, multiplySigned16x4AVX2, multiplyLow16x4AVX2},
		width{2, multiplySigned32x2AVX2, multiplyLow32x2AVX2, multiplySigned16x2AVX2, multiplyLow16x2AVX2},
		width{1, multiplySigned32x1AVX2, multiplyLow32x1AVX2, multiplySigned16x1AVX2, multiplyLow16x1AVX2},
	),
}
