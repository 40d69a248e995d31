// The forms in which a value of the program lies in memory: rows of float32, and
// what products read.
#pragma once
#include "device.cuh"

// Rows of every form are stride elements apart, a multiple of 256.
//
// q8 is what weights in blocks are multiplied with: signed bytes, each 32 of which
// share a scale, max|x|/127. meta has 8 bytes for each 32: the scale as float32, and the
// sums of its first and of its second 16 columns as int16.
// bf16 and f16 are what weights of those types are multiplied with; f16 has been
// divided by 64, so that it holds up to four million. In all of them numbers 8t to 8t+7 of
// 32 are columns 4t to 4t+3 and 16+4t to 16+4t+3: those of a lane of a matrix
// instruction. Beyond a row's columns, up to the stride, q8, meta, bf16 and f16 are 0, and
// f32 is anything.
struct Forms {
  float *f32; // each may be 0: nobody reads it
  s8 *q8;
  uint2 *meta;
  u16 *bf16;
  u16 *f16;
  s32 stride;
  s32 cols;
};

constexpr float halfScale = 1.0f / 64;

// placeOf is where column i of 32 stands.
INLINE int placeOf(int i) { return (i & 12) * 2 + (i & 3) + (i >> 4) * 4; }

// storeBlock writes columns 32*block to 32*block+31 of a row, of which lane i has
// number i; what lies beyond the columns must be 0. All lanes of a warp take part.
// Whoever writes the last block of the columns writes the padding too.
INLINE void storeBlock(const Forms &f, int row, int block, int lane, float v) {
  const s64 at = s64(row) * f.stride + 32 * block + lane, to = at - lane + placeOf(lane);
  if (f.f32 && 32 * block + lane < f.cols) f.f32[at] = v;
  const int end = 32 * block + 32 >= f.cols ? f.stride / 32 : block + 1;
  if (f.q8) {
    const float top = warpMax(absOf(v));
    const float d = divide(top, 127.0f);
    const float inverse = top > 0 ? divide(127.0f, top) : 0.0f;
    const int q = minOf(127, maxOf(-127, roundToInt(v * inverse)));
    f.q8[to] = s8(q);
    int sum = q;
    UNROLL for (int m = 8; m; m >>= 1) sum += shuffleXor(sum, m);
    const int upper = shuffleFrom(sum, 16);
    uint2 *meta = f.meta + s64(row) * (f.stride / 32);
    // A value that is not finite must not become one that is.
    const bool good = ballot(isFinite(v)) == 0xffffffffu;
    if (lane == 0) meta[block] = uint2{good ? asBits(d) : 0x7fc00000u, u32(sum & 0xffff) | u32(upper) << 16};
    for (int b = block + 1; b < end; b++) {
      f.q8[s64(row) * f.stride + 32 * b + lane] = 0;
      if (lane == 0) meta[b] = uint2{0, 0};
    }
  }
  if (f.bf16) {
    f.bf16[to] = floatToBfloat(v);
    for (int b = block + 1; b < end; b++) f.bf16[s64(row) * f.stride + 32 * b + lane] = 0;
  }
  if (f.f16) {
    f.f16[to] = floatToHalf(v * halfScale);
    for (int b = block + 1; b < end; b++) f.f16[s64(row) * f.stride + 32 * b + lane] = 0;
  }
}

INLINE u32 wordOf(u16 low, u16 high) { return u32(low) | u32(high) << 16; }

// storeFour writes what storeBlock writes, to the bit, but four columns of each lane
// and so four blocks at once: one row then takes a quarter of the shuffles, which
// stand one behind the other. col is the lane's first column, a multiple of 4; the
// warp's is one of 128. Padding is columns like any other, of zeros.
INLINE void storeFour(const Forms &f, int row, int col, int lane, float4 v) {
  const s64 at = s64(row) * f.stride + col, to = (at & -32) + placeOf(int(at & 31));
  if (f.f32) {
    if (col <= f.cols - 4) {
      *reinterpret_cast<float4 *>(f.f32 + at) = v;
    } else {
      if (col < f.cols) f.f32[at] = v.x;
      if (col < f.cols - 1) f.f32[at + 1] = v.y;
      if (col < f.cols - 2) f.f32[at + 2] = v.z;
    }
  }
  if (f.q8) {
    float top = maxOf(maxOf(absOf(v.x), absOf(v.y)), maxOf(absOf(v.z), absOf(v.w)));
    UNROLL for (int m = 4; m; m >>= 1) top = maxOf(top, shuffleXor(top, m));
    const float d = divide(top, 127.0f);
    const float inverse = top > 0 ? divide(127.0f, top) : 0.0f;
    const auto rounded = [inverse](float x) { return minOf(127, maxOf(-127, roundToInt(x * inverse))); };
    const int a = rounded(v.x), b = rounded(v.y), c = rounded(v.z), e = rounded(v.w);
    *reinterpret_cast<u32 *>(f.q8 + to) =
        u32(a & 0xff) | u32(b & 0xff) << 8 | u32(c & 0xff) << 16 | u32(e & 0xff) << 24;
    int sum = (a + b) + (c + e);
    sum += shuffleXor(sum, 2);
    sum += shuffleXor(sum, 1);
    const int upper = shuffleXor(sum, 4);
    // A value that is not finite must not become one that is.
    const u32 finite = ballot(isFinite(v.x) && isFinite(v.y) && isFinite(v.z) && isFinite(v.w));
    const bool good = (finite >> (lane & 24) & 0xff) == 0xff;
    if ((lane & 7) == 0) f.meta[at / 32] = uint2{good ? asBits(d) : 0x7fc00000u, u32(sum & 0xffff) | u32(upper) << 16};
  }
  if (f.bf16) {
    *reinterpret_cast<uint2 *>(f.bf16 + to) =
        uint2{wordOf(floatToBfloat(v.x), floatToBfloat(v.y)), wordOf(floatToBfloat(v.z), floatToBfloat(v.w))};
  }
  if (f.f16) {
    *reinterpret_cast<uint2 *>(f.f16 + to) = uint2{wordOf(floatToHalf(v.x * halfScale), floatToHalf(v.y * halfScale)),
                                                   wordOf(floatToHalf(v.z * halfScale), floatToHalf(v.w * halfScale))};
  }
}
