// Experts whose weights are Q5_0, times float32.
#include "experts.cuh"

EXPERTS_OF_FLOATS(Q5_0)
