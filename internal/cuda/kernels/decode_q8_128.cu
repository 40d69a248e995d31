#include "decode.cuh"

DECODE(decode_1, CacheQ8, 128, 1)
DECODE(decode_2, CacheQ8, 128, 2)
DECODE(decode_4, CacheQ8, 128, 4)
