// Weights in Q5_1 times float32.
#include "linear.cuh"

LINEAR(linear_f32, Q5_1, Floats<Q5_1>, 1, false, false, false, 1)
