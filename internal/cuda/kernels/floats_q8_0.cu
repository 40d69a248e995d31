// Weights in Q8_0 times float32.
#include "linear.cuh"

LINEAR(linear_f32, Q8_0, Floats<Q8_0>, 1, false, false, false, 1)
