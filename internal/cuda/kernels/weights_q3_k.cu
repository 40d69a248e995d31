// Weights in Q3_K.
#include "weights.cuh"

LINEAR_FORMAT(Q3_K, Bytes, false)
WEIGHTS(Q3_K)
