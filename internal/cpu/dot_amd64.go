package cpu

func dotsAVX512(dst, w, x []float32, k, stride, tokens int) {
	dotBlocks(dst, w, x, k, stride, tokens, 16, 4, dot4x4AVX512, dot8x1AVX512)
}

func dotsAVX2(dst, w, x []float32, k, stride, tokens int) {
	dotBlocks(dst, w, x, k, stride, tokens, 8, 2, dot4x2AVX2, dot8x1AVX2)
}
