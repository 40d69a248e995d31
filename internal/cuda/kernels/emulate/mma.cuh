// mma.cuh on the host. The sum of a step is rounded once, where tensor cores truncate. So bits differ
// from a GPU's, but here too they depend neither on other rows nor on the order of a step's numbers.
#pragma once
#include "device.cuh"

template <class Of> INLINE void addWarpProducts(float *c, uint4 a, u32 b0, u32 b1, const Of &of) {
  const u32 mine[6] = {a.x, a.y, a.z, a.w, b0, b1};
  const auto all = machine::exchange(mine, 6);
  const int g = (tidX() & 31) / 4, t = tidX() & 3;
  for (int i = 0; i < 4; i++) {
    const int row = g + i / 2 * 8, col = 2 * t + i % 2;
    double sum = c[i];
    for (int k = 0; k < 16; k++) {
      const u32 x = all[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], y = all[col * 4 + k % 8 / 2][4 + k / 8];
      sum += double(of(u16(x >> (k % 2 * 16)))) * of(u16(y >> (k % 2 * 16)));
    }
    c[i] = float(sum);
  }
}
INLINE void addHalfProducts(float *c, uint4 a, u32 b0, u32 b1) { addWarpProducts(c, a, b0, b1, [](u16 v) { return halfToFloat(v); }); }
INLINE void addBfloatProducts(float *c, uint4 a, u32 b0, u32 b1) { addWarpProducts(c, a, b0, b1, [](u16 v) { return bfloatToFloat(v); }); }
