// Weights in IQ4_XS.
#include "weights.cuh"

LINEAR_FORMAT(IQ4_XS, Bytes, false)
WEIGHTS(IQ4_XS)
