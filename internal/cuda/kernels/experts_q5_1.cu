// Experts whose weights are Q5_1.
#include "experts.cuh"

EXPERTS(Q5_1, Bytes, false)
