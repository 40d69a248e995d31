// Experts whose weights are Q8_0, times float32.
#include "experts.cuh"

EXPERTS_OF_FLOATS(Q8_0)
