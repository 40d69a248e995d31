// Experts whose weights are IQ4_NL, times float32.
#include "experts.cuh"

EXPERTS_OF_FLOATS(IQ4_NL)
