// Experts whose weights are MXFP4.
#include "experts.cuh"

EXPERTS(MXFP4, Bytes, false)
