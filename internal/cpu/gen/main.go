// Command gen writes the amd64 assembly of package cpu and its declarations; go
// generate in this folder runs it.
package main

//go:generate go run . -out ../kernels_amd64.s -stubs ../kernels_stubs_amd64.go -pkg cpu

import . "github.com/mmcloughlin/avo/build"

func main() {
	ConstraintExpr("amd64")
	avx2 := tier{"AVX2", 8, YMM, sumYMM}
	avx512 := tier{"AVX512", 16, ZMM, sumZMM}
	dot(avx2, 4, 2)
	dot(avx2, 8, 1)
	dot(avx512, 4, 4)
	dot(avx512, 8, 1)
	floats()
	q8_0()
	q4_0()
	q4_K()
	q5_K()
	q6_K()
	Generate()
}
