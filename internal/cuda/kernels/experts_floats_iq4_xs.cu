// Experts whose weights are IQ4_XS, times float32.
#include "experts.cuh"

EXPERTS_OF_FLOATS(IQ4_XS)
