// Weights in Q2_K times float32.
#include "linear.cuh"

LINEAR_OF_FLOATS(Q2_K)
