// Experts whose weights are Q2_K, times float32.
#include "experts.cuh"

EXPERTS_OF_FLOATS(Q2_K)
