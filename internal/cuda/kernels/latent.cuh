// Latent attention: all heads of a token attend to one row of the cache per position, whose leading
// numbers are the values. The arithmetic is that of segment.cuh.
#pragma once
#include "anyattention.cuh"
#include "half.cuh"
#include "matrix.cuh"

constexpr int latentHeads = 16, latentColumns = 64; // of a block, of a warp or a tile
constexpr int manyTokens = 2;                       // of a block that has several
constexpr int latentPiece = 64, pieceRuns = latentPiece / runTokens;

INLINE Seen seenBy(const AnyAttentionArgs &a, int position) { return Seen{a.window > 0 ? maxOf(0, position - a.window + 1) : 0, position}; }

// LatentRows are heads of a token, n of them from first on.
struct LatentRows {
  int token, first, n;
  METHOD LatentRows(const AnyAttentionArgs &a, int token, int group) : token(token), first(group * latentHeads), n(minOf(latentHeads, a.heads - first)) {}

  // load calls put with four numbers of the queries of a row, of column and of the next ones, in
  // float16, for all rows. There are 16: those beyond n are 0. Of a warp, eight lanes read
  // adjacent numbers. A thread asks for N fours at a time.
  template <int N, class Put> METHOD void load(const AnyAttentionArgs &a, int thread, int threads, const Put &put) const {
    const int dim = a.pool.keyDim, all = latentHeads * dim / 4;
    const float *q = a.q + s64(token) * a.stride + s64(first) * dim;
    const auto rowOf = [](int i) ALWAYS { return i % 4 + i / 32 % 4 * 4; };
    const auto columnOf = [](int i) ALWAYS { return (i / 4 % 8 + i / 128 * 8) * 4; };
    _Pragma("unroll 1") for (int from = thread; from < all; from += N * threads) {
      float4 v[N];
      UNROLL for (int k = 0; k < N; k++) {
        const int i = from + k * threads;
        v[k] = i < all && rowOf(i) < n ? *reinterpret_cast<const float4 *>(q + rowOf(i) * dim + columnOf(i)) : float4{};
      }
      UNROLL for (int k = 0; k < N; k++) {
        const int i = from + k * threads;
        if (i < all) put(rowOf(i), columnOf(i), uint2{halvesOf(v[k].x, v[k].y), halvesOf(v[k].z, v[k].w)});
      }
    }
  }

  // store divides four columns of a row by the sum of its weights, and writes them.
  METHOD void store(const AnyAttentionArgs &a, int row, int column, float4 v, float sum) const {
    if (row >= n) return;
    const int col = (first + row) * a.values + column;
    UNROLL for (int i = 0; i < 4; i++) v[i] = divide(v[i], sum);
    storeFour(a.out, token, col, v);
    if (first + row == a.heads - 1 && column == a.values - 4) { // the padding, too
      for (int c = col + 4; c < a.out.stride; c += 4) storeFour(a.out, token, c, float4{});
    }
  }
};

// Factors are what the sums so far and the next ones are multiplied by where they are joined.
struct alignas(8) Factors {
  float before, next;
  METHOD float joined(float sum, float other) const { return fma(other, next, sum * before); }
};
INLINE Factors factorsOf(float &top, float next) {
  const float most = maxOf(top, next);
  const Factors f{exp2Of(top - most), exp2Of(next - most)};
  top = most;
  return f;
}
