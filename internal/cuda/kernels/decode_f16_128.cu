#include "decode.cuh"

DECODE(decode_1, CacheF16, 128, 1)
DECODE(decode_2, CacheF16, 128, 2)
DECODE(decode_4, CacheF16, 128, 4)
