// Experts whose weights are Q4_0.
#include "experts.cuh"

EXPERTS(Q4_0, Bytes, false)
