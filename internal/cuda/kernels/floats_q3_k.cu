// Weights in Q3_K times float32.
#include "linear.cuh"

LINEAR(linear_f32, Q3_K, Floats<Q3_K>, 1, false, false, false, 1)
