// Weights in IQ4_NL times float32.
#include "linear.cuh"

LINEAR(linear_f32, IQ4_NL, Floats<IQ4_NL>, 1, false, false, false, 1)
