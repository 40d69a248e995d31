// Weights in BF16.
#include "weights.cuh"

LINEAR_FORMAT(BF16, Words, false)
WEIGHTS(BF16)
