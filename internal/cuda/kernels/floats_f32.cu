// Weights in F32 times float32.
#include "linear.cuh"

LINEAR(linear_f32, F32, Floats<F32>, 1, false, false, false, 1)
