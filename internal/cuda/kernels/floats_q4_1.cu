// Weights in Q4_1 times float32.
#include "linear.cuh"

LINEAR_OF_FLOATS(Q4_1)
