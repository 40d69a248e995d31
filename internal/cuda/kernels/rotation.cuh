// Rotary positions of part of a row.
#pragma once
#include "device.cuh"

// A Rotation says how a token's row is rotated: its first dims numbers, in pairs.
struct Rotation {
  const float2 *angles; // [T][dims/2] cosine and sine; 0: nothing is rotated
  s32 dims;
  s32 interleaved; // pairs are 0: (i, i+dims/2), 1: (2i, 2i+1)
};

// rotatedAt returns number i of a token's row x, rotated.
INLINE float rotatedAt(const Rotation &r, int token, const float *x, int i) {
  if (!r.angles || i >= r.dims) return x[i];
  const int half = r.dims / 2;
  const bool second = r.interleaved ? i & 1 : i >= half;
  const int apart = r.interleaved ? 1 : half;
  const float2 by = r.angles[s64(token) * half + (r.interleaved ? i / 2 : second ? i - half : i)];
  return fma(x[second ? i - apart : i + apart], second ? by.y : -by.y, x[i] * by.x);
}
