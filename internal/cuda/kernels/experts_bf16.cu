// Experts whose weights are BF16.
#include "experts.cuh"

EXPERTS(BF16, Words, false)
