// Experts whose weights are Q3_K.
#include "experts.cuh"

EXPERTS(Q3_K, Bytes, false)
