// Experts whose weights are Q3_K, times float32.
#include "experts.cuh"

EXPERTS_OF_FLOATS(Q3_K)
