#include "decode.cuh"

DECODE(decode_1, CacheF32, 128, 1)
DECODE(decode_2, CacheF32, 128, 2)
DECODE(decode_4, CacheF32, 128, 4)
