// Weights in F16 times float32.
#include "linear.cuh"

LINEAR_OF_FLOATS(F16)
