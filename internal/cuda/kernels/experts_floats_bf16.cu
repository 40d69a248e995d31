// Experts whose weights are BF16, times float32.
#include "experts.cuh"

EXPERTS_OF_FLOATS(BF16)
