// Weights in IQ4_XS times float32.
#include "linear.cuh"

LINEAR_OF_FLOATS(IQ4_XS)
