// Weights in Q4_K times float32.
#include "linear.cuh"

LINEAR_OF_FLOATS(Q4_K)
