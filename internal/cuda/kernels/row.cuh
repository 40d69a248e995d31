// A single row of activations in a block's shared memory. Each warp loads its own segment; the
// block may normalize the row itself.
#pragma once
#include "multiply.cuh"
#include "norm.cuh"

// How many tiles of weights are loaded ahead for one row of the input, see pipeline.cuh. Weights that
// are unpacked have none: fewer registers wait for memory then. 16-bit weights are not unpacked.
template <class F> constexpr int aheadOfOne = F::scaled ? 0 : 2;

// putColumns stores columns col to col+7 of a row, two to a word, in the order of WordsOne.
INLINE void putColumns(u16 *row, int col, const u32 (&w)[4]) {
  // the first and second columns of each step
  u32 *to = reinterpret_cast<u32 *>(row + (col & -32)) + col % 32 / 8;
  UNROLL for (int t = 0; t < 4; t++) to[4 * t] = w[t];
}

// bringRow copies columns from to end-1 of a row, both multiples of 32, with the calling warp.
INLINE void bringRow(u16 *to, const u16 *x, int row, int stride, int from, int end, int lane) {
  constexpr int together = 4; // loads in flight
  _Pragma("unroll 1") for (int first = from + 8 * lane; first < end; first += 256 * together) {
    uint4 v[together];
    UNROLL for (int i = 0; i < together; i++) {
      if (first + 256 * i < end) v[i] = *reinterpret_cast<const uint4 *>(x + placeOf(row, first + 256 * i, stride));
    }
    UNROLL for (int i = 0; i < together; i++) {
      if (first + 256 * i < end) putColumns(to, first + 256 * i, {v[i].x, v[i].y, v[i].z, v[i].w});
    }
  }
  syncWarp();
}

template <class F> INLINE u16 numberOf(float v, float by) { return floatToHalf(v * by); }
template <> METHOD u16 numberOf<BF16>(float v, float) { return floatToBfloat(v); }

INLINE float4 fourOf(const float *p, int i, int n) { return i < n ? *reinterpret_cast<const float4 *>(p + i) : float4{}; }

// roundRow rounds columns from to end-1 of a row in float32, both multiples of 32, with the calling
// warp. Columns from cols on are 0; cols is a multiple of 4.
template <class F> INLINE void roundRow(u16 *to, const float *x, int cols, float by, int from, int end, int lane) {
  for (int col = from + 8 * lane; col < end; col += 256) {
    const float4 low = fourOf(x, col, cols), high = fourOf(x, col + 4, cols);
    putColumns(to, col, {wordOf(numberOf<F>(low.x, by), numberOf<F>(low.y, by)), wordOf(numberOf<F>(low.z, by), numberOf<F>(low.w, by)),
                         wordOf(numberOf<F>(high.x, by), numberOf<F>(high.y, by)), wordOf(numberOf<F>(high.z, by), numberOf<F>(high.w, by))});
  }
  syncWarp();
}

// normalizeRow does what the kernel norm does for a row of a.cols columns, a multiple of 4. It
// stores columns from to end-1, both multiples of 32, with the calling warp.
template <class F> INLINE void normalizeRow(const LinearArgs &a, u16 *to, int from, int end, int warp, int lane) {
  alignas(16) __shared__ float sums[normParts];
  const float *x = a.x + s64(a.row ? *a.row : 0) * a.inStride;
  const int column = 8 * lane; // of the 256 columns that a warp computes together
  float4 v[2], w[2];           // of the first 256
  UNROLL for (int i = 0; i < 2; i++) {
    v[i] = fourOf(x, from + column + 4 * i, a.cols);
    w[i] = fourOf(a.norm, from + column + 4 * i, a.cols);
  }
  UNROLL for (int p = 0; p < 2; p++) {
    const int part = 2 * warp + p;
    float4 squares = {};
    for (int i = 128 * part + 4 * lane; i < a.cols; i += normColumns) squares = squaresAdded(squares, fourOf(x, i, a.cols));
    float s = sumOf(squares);
    UNROLL for (int m = 16; m; m >>= 1) s = s + shuffleXor(s, m);
    if (lane == 0) sums[part] = s;
  }
  syncBlock();
  const float scale = scaleOf(sumOfParts(sums), divide(1.0f, float(a.cols)), a.eps), by = divide(1.0f, a.divided);
  for (int first = from; first < end; first += 256) {
    float y[8];
    UNROLL for (int i = 0; i < 8; i++) y[i] = v[i / 4][i & 3] * scale * w[i / 4][i & 3];
    UNROLL for (int i = 0; i < 2; i++) { // loads the next 256 while this one is stored
      v[i] = fourOf(x, first + 256 + column + 4 * i, a.cols);
      w[i] = fourOf(a.norm, first + 256 + column + 4 * i, a.cols);
    }
    u32 words[4];
    UNROLL for (int i = 0; i < 4; i++) words[i] = wordOf(numberOf<F>(y[2 * i], by), numberOf<F>(y[2 * i + 1], by));
    if (first + column < end) putColumns(to, first + column, words);
  }
  syncWarp();
}
