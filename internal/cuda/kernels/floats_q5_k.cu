// Weights in Q5_K times float32.
#include "linear.cuh"

LINEAR(linear_f32, Q5_K, Floats<Q5_K>, 1, false, false, false, 1)
