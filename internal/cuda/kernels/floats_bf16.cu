// Weights in BF16 times float32.
#include "linear.cuh"

LINEAR(linear_f32, BF16, Floats<BF16>, 1, false, false, false, 1)
