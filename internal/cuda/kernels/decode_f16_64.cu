#include "decode.cuh"

DECODE(decode_1, CacheF16, 64, 1)
DECODE(decode_2, CacheF16, 64, 2)
DECODE(decode_4, CacheF16, 64, 4)
