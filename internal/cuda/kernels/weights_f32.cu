// Weights in F32.
#include "weights.cuh"

WEIGHTS(F32)
