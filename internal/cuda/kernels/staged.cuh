// Eight rows of a 16-bit input, which each warp copies to its own shared memory ahead of the tiles
// of weights.
#pragma once
#include "matrix.cuh"
#include "multiply.cuh"

// A Staged multiplies tiles by rows first to first+7 of the input, as Words does for NT = 1; rows
// from count on are 0. It keeps the input of a few tiles, and all of the warp's segment if that is
// no more: in chunks of 64 columns, 128 bytes a row, with piece p of row g at p xor g. multiply is
// called for the tiles in order, total times.
template <class F> struct Staged {
  static constexpr int stageBytes = 8 * F::tileK * 2, stages = 8192 / stageBytes, steps = F::tileK / 16;
  static_assert(8 * stages * stageBytes == 64 << 10); // of a block's 8 warps; package lower has the same
  const u16 *x; // pieces 2t and 2t+1 of row g of chunk 0, for lane 4g+t
  u32 to, at;   // of these pieces, and what the lane reads, in the first stage
  int from, tiles, next, left, stage; // left: tiles to copy
  bool there;                         // row g; others are 0
  template <class A> METHOD Staged(const A &a, u8 *shared, int first, int count, int from, int tiles, int total, int warp, int lane) : from(from), tiles(tiles), next(0), stage(0), there(first + lane / 4 < count) {
    const int g = lane / 4, t = lane % 4, row = minOf(first + g, count - 1), r = lane % 8;
    x = a.h16 + chunkOf(row, 0, a.inStride) + 16 * t;
    const u32 ring = sharedAt(shared) + warp * (stages * stageBytes);
    to = ring + 128 * g + 16 * ((2 * t ^ row ^ g) % 8), at = ring + 128 * r + 16 * (lane / 8 ^ r);
    left = tiles <= stages ? tiles : total;
    UNROLL for (int i = 0; i < stages; i++) copy(i);
  }
  METHOD void copy(int stage) {
    if (left > 0) {
      UNROLL for (int c = 0; c < F::tileK / chunkCols; c++) {
        const u16 *chunk = x + s64((from + next) * (F::tileK / chunkCols) + c) * (chunkRows * chunkCols);
        const u32 place = to + stage * stageBytes + 1024 * c;
        copyChunk(place, chunk, there), copyChunk(place ^ 16, chunk + 8, there);
      }
      left--;
      if (++next == tiles) next = 0;
    }
    endCopies();
  }
  template <int T> METHOD void multiply(float (&acc)[T][1][4], const F (&w)[T], int kt) {
    waitCopies<stages - 1>();
    syncWarp();
    const bool all = tiles <= stages;
    const u32 here = at + (all ? kt - from : stage) * stageBytes;
    UNROLL for (int step = 0; step < steps; step += 2) {
      u32 m[4]; // of two steps
      loadMatrices(m, (here ^ (step & 2) << 5) + step / 4 * 1024);
      UNROLL for (int i = 0; i < T; i++) {
        multiplyStep<F>(acc[i][0], w[i].operand(step), m[0], m[1]);
        multiplyStep<F>(acc[i][0], w[i].operand(step + 1), m[2], m[3]);
      }
    }
    syncWarp(); // all lanes have read the stage
    copy(stage);
    if (++stage == stages) stage = 0;
  }
};

// How eight rows are multiplied: OfEight multiplies eightTogether tiles of rows together, and
// eightAhead times as many are loaded ahead. Devices before Hopper may have no room for the input of
// two blocks of a multiprocessor.
#if __CUDA_ARCH__ >= 900
template <class F> using OfEight = Staged<F>;
constexpr int eightTogether = 2, eightAhead = 1;
#else
template <class F> using OfEight = Words<F, 1>;
constexpr int eightTogether = 1, eightAhead = 2;
#endif
