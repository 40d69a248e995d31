// Weights in Q8_0.
#include "weights.cuh"

LINEAR_FORMAT(Q8_0, Bytes, false)
WEIGHTS(Q8_0)
