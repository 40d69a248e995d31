// Experts whose weights are Q6_K.
#include "experts.cuh"

EXPERTS(Q6_K, Bytes, false)
