// Experts whose weights are Q4_1, times float32.
#include "experts.cuh"

EXPERTS_OF_FLOATS(Q4_1)
