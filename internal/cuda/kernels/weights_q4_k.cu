// Weights in Q4_K.
#include "weights.cuh"

LINEAR_FORMAT(Q4_K, Bytes, false)
WEIGHTS(Q4_K)
