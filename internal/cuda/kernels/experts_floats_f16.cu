// Experts whose weights are F16, times float32.
#include "experts.cuh"

EXPERTS_OF_FLOATS(F16)
