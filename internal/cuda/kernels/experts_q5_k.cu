// Experts whose weights are Q5_K.
#include "experts.cuh"

EXPERTS(Q5_K, Bytes, false)
