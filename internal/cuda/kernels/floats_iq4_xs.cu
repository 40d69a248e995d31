// Weights in IQ4_XS times float32.
#include "linear.cuh"

LINEAR(linear_f32, IQ4_XS, Floats<IQ4_XS>, 1, false, false, false, 1)
