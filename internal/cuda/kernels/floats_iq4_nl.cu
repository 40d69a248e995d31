// Weights in IQ4_NL times float32.
#include "linear.cuh"

LINEAR_OF_FLOATS(IQ4_NL)
