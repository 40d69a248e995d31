// Weights in Q6_K.
#include "weights.cuh"

LINEAR_FORMAT(Q6_K, Bytes, false)
WEIGHTS(Q6_K)
