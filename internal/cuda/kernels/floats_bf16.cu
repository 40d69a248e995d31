// Weights in BF16 times float32.
#include "linear.cuh"

LINEAR_OF_FLOATS(BF16)
