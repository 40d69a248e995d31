package cpu

// A storedDots function multiplies rows of weights in their stored format, w, stride bytes apart,
// with tokens rows of activations, x [tokens, k], apart elements apart. dst[t*8+r] has the same
// bits as the tier's dots function gives for the dequantized row. There are eight rows, or as many
// as begin in w. It is faster than dequantizing for few tokens. It prefetches the next eight rows.
type storedDots func(dst []float32, w []byte, stride int, x []float32, k, apart, tokens int)
