// Weights in Q5_0.
#include "weights.cuh"

LINEAR_FORMAT(Q5_0, Bytes, false)
WEIGHTS(Q5_0)
