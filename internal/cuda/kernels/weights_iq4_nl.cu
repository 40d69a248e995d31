// Weights in IQ4_NL.
#include "weights.cuh"

LINEAR_FORMAT(IQ4_NL, Bytes, false)
WEIGHTS(IQ4_NL)
