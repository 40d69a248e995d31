// Weights in Q5_K times float32.
#include "linear.cuh"

LINEAR_OF_FLOATS(Q5_K)
