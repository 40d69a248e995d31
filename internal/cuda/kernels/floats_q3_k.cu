// Weights in Q3_K times float32.
#include "linear.cuh"

LINEAR_OF_FLOATS(Q3_K)
