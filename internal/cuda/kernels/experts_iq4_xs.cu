// Experts whose weights are IQ4_XS.
#include "experts.cuh"

EXPERTS(IQ4_XS, Bytes, false)
