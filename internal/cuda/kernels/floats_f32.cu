// Weights in F32 times float32.
#include "linear.cuh"

LINEAR_OF_FLOATS(F32)
