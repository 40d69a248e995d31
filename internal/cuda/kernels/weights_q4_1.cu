// Weights in Q4_1.
#include "weights.cuh"

LINEAR_FORMAT(Q4_1, Bytes, false)
WEIGHTS(Q4_1)
