// Weights in Q5_1.
#include "weights.cuh"

LINEAR_FORMAT(Q5_1, Bytes, false)
WEIGHTS(Q5_1)
