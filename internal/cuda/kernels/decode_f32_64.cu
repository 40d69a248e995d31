#include "decode.cuh"

DECODE(decode_1, CacheF32, 64, 1)
DECODE(decode_2, CacheF32, 64, 2)
DECODE(decode_4, CacheF32, 64, 4)
