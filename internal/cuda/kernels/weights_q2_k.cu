// Weights in Q2_K.
#include "weights.cuh"

LINEAR_FORMAT(Q2_K, Bytes, false)
WEIGHTS(Q2_K)
