#include "attention.cuh"

ATTENTION(attention_f32, CacheF32)
