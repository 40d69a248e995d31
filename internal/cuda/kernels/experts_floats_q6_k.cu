// Experts whose weights are Q6_K, times float32.
#include "experts.cuh"

EXPERTS_OF_FLOATS(Q6_K)
