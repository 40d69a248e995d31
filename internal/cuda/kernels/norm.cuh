// The arithmetic of an RMS norm over whole rows, which a kernel of its own does for
// many rows and the products that read it do for one.
#pragma once
#include "forms.cuh"

// 1/sqrt(v) to about one unit in the last place: one of Newton's steps mends the
// approximation. It makes NaN of Inf: a sum that overflowed must be seen.
INLINE float inverseRoot(float v) {
  const float r = nearInverseRoot(v);
  return fma(0.5f * r, fma(-(v * r), r, 1.0f), r);
}

INLINE float sumOf(float4 v) { return (v.x + v.z) + (v.y + v.w); }

INLINE float4 squaresAdded(float4 s, float4 v) {
  return float4{fma(v.x, v.x, s.x), fma(v.y, v.y, s.y), fma(v.z, v.z, s.z), fma(v.w, v.w, s.w)};
}

// The squares of a row are added up in 16 parts: part w takes columns 128w to 128w+127 of
// every 2048, four neighbouring ones in a lane, those 2048 apart in ascending order; then
// its lanes.
constexpr int normParts = 16;
constexpr int normColumns = 128 * normParts;

// sumOfParts adds the parts up.
INLINE float sumOfParts(const float *sums) {
  const auto p = reinterpret_cast<const float4 *>(sums);
  return sumOf((p[0] + p[1]) + (p[2] + p[3]));
}

// scaleOf is what a row is multiplied with, beside its weights.
INLINE float scaleOf(float squares, float share, float eps) { return inverseRoot(fma(squares, share, eps)); }
