// Experts whose weights are MXFP4, times float32.
#include "experts.cuh"

EXPERTS_OF_FLOATS(MXFP4)
