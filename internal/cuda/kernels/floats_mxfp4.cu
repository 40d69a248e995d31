// Weights in MXFP4 times float32.
#include "linear.cuh"

LINEAR_OF_FLOATS(MXFP4)
