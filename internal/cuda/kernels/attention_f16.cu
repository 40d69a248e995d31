#include "attention.cuh"

ATTENTION(attention_f16, CacheF16)
