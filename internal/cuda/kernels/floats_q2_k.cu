// Weights in Q2_K times float32.
#include "linear.cuh"

LINEAR(linear_f32, Q2_K, Floats<Q2_K>, 1, false, false, false, 1)
