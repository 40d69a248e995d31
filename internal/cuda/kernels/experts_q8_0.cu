// Experts whose weights are Q8_0.
#include "experts.cuh"

EXPERTS(Q8_0, Bytes, false)
