// Weights in Q6_K times float32.
#include "linear.cuh"

LINEAR_OF_FLOATS(Q6_K)
