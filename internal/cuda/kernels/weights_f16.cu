// Weights in F16, whose activations have been divided by 64.
#include "weights.cuh"

LINEAR_FORMAT(F16, Words, true)
WEIGHTS(F16)
