// Experts whose weights are Q4_K.
#include "experts.cuh"

EXPERTS(Q4_K, Bytes, false)
