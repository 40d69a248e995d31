// Experts whose weights are F32, times float32.
#include "experts.cuh"

EXPERTS_OF_FLOATS(F32)
