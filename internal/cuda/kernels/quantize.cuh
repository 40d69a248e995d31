// Conversion of the rows of an input to float8 (E4M3).
#pragma once
#include "float8.cuh"

struct QuantizeArgs {
  const u16 *from; // in float16, see Forms
  u8 *to;          // chunks of 128 columns, in the layout of chunks of 64 16-bit columns
  float *scales;   // [count] the factor of each row's numbers
  s32 stride;      // in columns, a multiple of 256
  float divided;   // the input in float16 is divided by this
  const s32 *count;
};

// quantize rounds one row per block, scaled so that its largest magnitude is the largest float8
// number. A row with a number that is not finite becomes NaN.
extern "C" __global__ void __launch_bounds__(256) quantize(const QuantizeArgs a) {
  waitForPrevious();
  allowNext();
  const int row = blockX(), pieces = a.stride / 16; // of 16 columns
  if (row >= *a.count) return;
  const u16 *x = a.from + chunkOf(row, 0, a.stride);
  constexpr s64 apart = chunkRows * chunkCols; // of adjacent chunks
  auto eight = [&](int i) ALWAYS { return *reinterpret_cast<const uint4 *>(x + i / 8 * apart + (i ^ row) % 8 * 8); };
  auto sizeOf = [&](u32 v) ALWAYS { return maxOf(int(v & 0x7fff), int(v >> 16 & 0x7fff)); };
  int most = 0;
  for (int i = tidX(); i < 2 * pieces; i += 256) {
    const uint4 v = eight(i);
    most = maxOf(most, maxOf(maxOf(sizeOf(v.x), sizeOf(v.y)), maxOf(sizeOf(v.z), sizeOf(v.w))));
  }
  most = warpMax(most);
  __shared__ int all[8];
  if (tidX() % 32 == 0) all[tidX() / 32] = most;
  syncBlock();
  UNROLL for (int i = 0; i < 8; i++) most = maxOf(most, all[i]);
  const float largest = halfToFloat(u16(most));
  const float by = largest > 0 ? divide(mostFloat8, largest) : 1;
  if (tidX() == 0) a.scales[row] = divide(largest, mostFloat8) * a.divided;

  u8 *to = a.to + 2 * chunkOf(row, 0, a.stride / 2);
  auto word = [&](u32 first, u32 second) ALWAYS {
    auto two = [&](u32 v) ALWAYS { return float8OfFloats(halfToFloat(u16(v)) * by, halfToFloat(u16(v >> 16)) * by); };
    return two(first) | two(second) << 16;
  };
  for (int i = tidX(); i < pieces; i += 256) {
    const uint4 v = eight(2 * i), w = eight(2 * i + 1);
    *reinterpret_cast<uint4 *>(to + i / 8 * (2 * apart) + (i ^ row) % 8 * 16) = uint4{word(v.x, w.x), word(v.y, w.y), word(v.z, w.z), word(v.w, w.w)};
  }
}
