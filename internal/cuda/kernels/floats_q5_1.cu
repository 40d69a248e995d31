// Weights in Q5_1 times float32.
#include "linear.cuh"

LINEAR_OF_FLOATS(Q5_1)
