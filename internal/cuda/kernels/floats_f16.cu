// Weights in F16 times float32.
#include "linear.cuh"

LINEAR(linear_f32, F16, Floats<F16>, 1, false, false, false, 1)
