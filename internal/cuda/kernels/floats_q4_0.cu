// Weights in Q4_0 times float32.
#include "linear.cuh"

LINEAR(linear_f32, Q4_0, Floats<Q4_0>, 1, false, false, false, 1)
