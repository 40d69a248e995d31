// Weights in Q4_K times float32.
#include "linear.cuh"

LINEAR(linear_f32, Q4_K, Floats<Q4_K>, 1, false, false, false, 1)
