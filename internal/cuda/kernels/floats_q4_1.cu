// Weights in Q4_1 times float32.
#include "linear.cuh"

LINEAR(linear_f32, Q4_1, Floats<Q4_1>, 1, false, false, false, 1)
