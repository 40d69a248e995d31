// Experts whose weights are Q4_1.
#include "experts.cuh"

EXPERTS(Q4_1, Bytes, false)
