package cpu

func dotsNEON(dst, w, x []float32, k, stride, tokens int) {
	dotBlocks(dst, w, x, k, stride, tokens, neonLanes, 4, dot4x4NEON, dot8x1NEON)
}
