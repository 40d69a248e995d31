// The arithmetic of an RMS norm over whole rows. The kernel norm uses it for many rows, and the
// products that read the norm use it for a single row.
#pragma once
#include "forms.cuh"

// 1/sqrt(v) with an error of about one unit in the last place: one Newton step corrects the
// approximation. Inf gives NaN, so that a sum that overflowed shows.
INLINE float inverseRoot(float v) {
  const float r = nearInverseRoot(v);
  return fma(0.5f * r, fma(-(v * r), r, 1.0f), r);
}

INLINE float sumOf(float4 v) { return (v.x + v.z) + (v.y + v.w); }

INLINE float4 squaresAdded(float4 s, float4 v) {
  return float4{fma(v.x, v.x, s.x), fma(v.y, v.y, s.y), fma(v.z, v.z, s.z), fma(v.w, v.w, s.w)};
}

// The squares of a row are added in 16 parts: part w is columns 128w to 128w+127 of every 2048. A
// lane adds four adjacent columns of each 2048, in ascending order; then the lanes are added.
constexpr int normParts = 16;
constexpr int normColumns = 128 * normParts;

// sumOfParts adds the parts.
INLINE float sumOfParts(const float *sums) {
  const auto p = reinterpret_cast<const float4 *>(sums);
  return sumOf((p[0] + p[1]) + (p[2] + p[3]));
}

// scaleOf returns the factor of a row, apart from the weights.
INLINE float scaleOf(float squares, float share, float eps) { return inverseRoot(fma(squares, share, eps)); }
