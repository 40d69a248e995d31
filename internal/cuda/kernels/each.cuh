// How kernels that do each value of a row alone go over rows: a warp has 32 columns.
#pragma once
#include "forms.cuh"

constexpr int threads = 256;

// eachBlock calls of(row, col) for the 32 columns of every row that a warp has, and
// stores what it returns; column col of a row is there only if of is called.
template <typename Of> INLINE void eachBlock(const Forms &out, const s32 *count, int cols, Of of) {
  const int lane = tidX() & 31;
  const int block = blockX() * (threads / 32) + tidX() / 32;
  if (32 * block >= cols) return; // padding: the warp of the last block writes it
  const int col = 32 * block + lane;
  const int rows = *count;
  for (int row = blockY(); row < rows; row += gridY()) {
    storeBlock(out, row, block, lane, col < cols ? of(row, col) : 0.0f);
  }
}
