package cpu

import "github.com/realizar/realizar/internal/plan"

var vectorNEON = vectorKernels{
	quantize: blocksOfRecord(quantizeNEON),
	sum:      total(func(x *float32, n int, _ float64) float64 { return sumNEON(x, n) }).of,
	squares:  total(squaresNEON).about,
	scale:    scaled(scaleNEON),
	center:   centered(centerNEON),
	glu: gated(map[plan.Activation]inPieces{
		plan.SiLU: gluSiLUNEON, plan.GELU: gluGELUNEON, plan.GELUTanh: gluGELUTanhNEON,
		plan.ReLU: gluReLUNEON, plan.ReLUSquared: gluReLUSquaredNEON, plan.Sigmoid: gluSigmoidNEON,
	}),
	add:    inPieces(addNEON).call,
	finite: sound(poisonNEON),
	maxima: largestOfBlocks(maximaNEON),
	rotate: turned(rotateHalvesNEON, rotateNeighboursNEON),
}
