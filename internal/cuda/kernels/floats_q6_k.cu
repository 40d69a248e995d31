// Weights in Q6_K times float32.
#include "linear.cuh"

LINEAR(linear_f32, Q6_K, Floats<Q6_K>, 1, false, false, false, 1)
