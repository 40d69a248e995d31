#include "attention.cuh"

ATTENTION(attention_q8, CacheQ8)
