package cpu

import "github.com/realizar/realizar/internal/plan"

var vectorAVX2 = vectorKernels{
	quantize: blocksOfRecord(quantizeAVX2),
	sum:      total(func(x *float32, n int, _ float64) float64 { return sumAVX2(x, n) }).of,
	squares:  total(squaresAVX2).about,
	scale:    scaled(scaleAVX2),
	center:   centered(centerAVX2),
	glu: gated(map[plan.Activation]inPieces{
		plan.SiLU: gluSiLUAVX2, plan.GELU: gluGELUAVX2, plan.GELUTanh: gluGELUTanhAVX2,
		plan.ReLU: gluReLUAVX2, plan.ReLUSquared: gluReLUSquaredAVX2, plan.Sigmoid: gluSigmoidAVX2,
	}),
	add:    inPieces(addAVX2).call,
	finite: sound(poisonAVX2),
	maxima: largestOfBlocks(maximaAVX2),
	rotate: turned(rotateHalvesAVX2, rotateNeighboursAVX2),
}

var vectorAVX512 = vectorKernels{
	quantize: blocksOfRecord(quantizeAVX512),
	sum:      total(func(x *float32, n int, _ float64) float64 { return sumAVX512(x, n) }).of,
	squares:  total(squaresAVX512).about,
	scale:    scaled(scaleAVX512),
	center:   centered(centerAVX512),
	glu: gated(map[plan.Activation]inPieces{
		plan.SiLU: gluSiLUAVX512, plan.GELU: gluGELUAVX512, plan.GELUTanh: gluGELUTanhAVX512,
		plan.ReLU: gluReLUAVX512, plan.ReLUSquared: gluReLUSquaredAVX512, plan.Sigmoid: gluSigmoidAVX512,
	}),
	add:    inPieces(addAVX512).call,
	finite: sound(poisonAVX512),
	maxima: largestOfBlocks(maximaAVX512),
	rotate: turned(rotateHalvesAVX512, rotateNeighboursAVX512),
}
