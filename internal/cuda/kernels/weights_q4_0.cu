// Weights in Q4_0.
#include "weights.cuh"

LINEAR_FORMAT(Q4_0, Bytes, false)
WEIGHTS(Q4_0)
