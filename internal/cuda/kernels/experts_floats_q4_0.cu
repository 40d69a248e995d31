// Experts whose weights are Q4_0, times float32.
#include "experts.cuh"

EXPERTS_OF_FLOATS(Q4_0)
