package cpu

// A storedDots function multiplies rows of weights as they are stored, w, stride
// bytes apart, with tokens rows of activations, x [tokens, k], which lie apart
// elements apart: dst[t*8+r] has the bits that the tier's dots function gives for
// the dequantised row. There are eight rows, or as many as begin in w. It is faster
// than that one for few tokens, and while it works it asks memory for the eight
// rows behind these.
type storedDots func(dst []float32, w []byte, stride int, x []float32, k, apart, tokens int)
