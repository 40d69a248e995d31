// Weights in MXFP4 times float32.
#include "linear.cuh"

LINEAR(linear_f32, MXFP4, Floats<MXFP4>, 1, false, false, false, 1)
