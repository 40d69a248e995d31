#include "decode.cuh"

DECODE(decode_1, CacheQ8, 64, 1)
DECODE(decode_2, CacheQ8, 64, 2)
DECODE(decode_4, CacheQ8, 64, 4)
