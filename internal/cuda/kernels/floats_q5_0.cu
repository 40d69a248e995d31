// Weights in Q5_0 times float32.
#include "linear.cuh"

LINEAR(linear_f32, Q5_0, Floats<Q5_0>, 1, false, false, false, 1)
