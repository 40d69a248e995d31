// Weights in Q8_0 times float32.
#include "linear.cuh"

LINEAR_OF_FLOATS(Q8_0)
