// What recurrent layers share, see plan.RecurrentChunk: a state per sequence at multiples of 64
// tokens, and the rows since then.
#pragma once
#include "activation.cuh"
#include "forms.cuh"
#include "rows.cuh"
#include "slots.cuh"

constexpr int chunkTokens = 64;
constexpr int recurrentThreads = 256;

// storeColumn writes column col of a row. If whole, the 32 lanes of the warp have adjacent columns
// from a multiple of 32 on.
INLINE void storeColumn(const Forms &out, int row, int col, bool whole, float v) {
  if (whole) storeBlock(out, row, col / 32, tidX() % 32, v);
  else out.f32[s64(row) * out.stride + col] = v;
}
