#include "decode.cuh"

DECODE(decode_1, CacheF32, 0, 1)
DECODE(decode_4, CacheF32, 0, 4)
