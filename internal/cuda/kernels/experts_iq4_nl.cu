// Experts whose weights are IQ4_NL.
#include "experts.cuh"

EXPERTS(IQ4_NL, Bytes, false)
