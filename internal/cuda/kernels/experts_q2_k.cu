// Experts whose weights are Q2_K.
#include "experts.cuh"

EXPERTS(Q2_K, Bytes, false)
