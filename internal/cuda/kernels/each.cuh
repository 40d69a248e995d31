// The loop of elementwise kernels over rows: a warp has 32 columns.
#pragma once
#include "forms.cuh"

constexpr int threads = 256;

// eachBlock calls of(row, col) for the 32 columns of a warp in each row, and stores the results. It
// does not call of for columns beyond the row.
template <typename Of> INLINE void eachBlock(const Forms &out, const s32 *count, int cols, Of of) {
  const int lane = tidX() & 31;
  const int block = blockX() * (threads / 32) + tidX() / 32;
  if (32 * block >= cols) return; // the warp of the last 32 columns writes the padding
  const int col = 32 * block + lane;
  const int rows = *count;
  for (int row = blockY(); row < rows; row += gridY()) {
    storeBlock(out, row, block, lane, col < cols ? of(row, col) : 0.0f);
  }
}
