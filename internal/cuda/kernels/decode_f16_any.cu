#include "decode.cuh"

DECODE(decode_1, CacheF16, 0, 1)
DECODE(decode_4, CacheF16, 0, 4)
