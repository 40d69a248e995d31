// Weights in MXFP4.
#include "weights.cuh"

LINEAR_FORMAT(MXFP4, Bytes, false)
WEIGHTS(MXFP4)
