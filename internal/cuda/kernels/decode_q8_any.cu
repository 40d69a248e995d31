#include "decode.cuh"

DECODE(decode_1, CacheQ8, 0, 1)
DECODE(decode_4, CacheQ8, 0, 4)
