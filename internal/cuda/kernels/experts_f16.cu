// Experts whose weights are F16.
#include "experts.cuh"

EXPERTS(F16, Words, true)
