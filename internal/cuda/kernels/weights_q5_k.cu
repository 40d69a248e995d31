// Weights in Q5_K.
#include "weights.cuh"

LINEAR_FORMAT(Q5_K, Bytes, false)
WEIGHTS(Q5_K)
