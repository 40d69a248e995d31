// Experts whose weights are Q5_0.
#include "experts.cuh"

EXPERTS(Q5_0, Bytes, false)
