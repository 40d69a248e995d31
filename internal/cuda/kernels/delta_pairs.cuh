// Products of the keys and queries of the gated delta rule with the keys of their chunk, for many
// rows of a sequence and gates by head.
#pragma once
#include "delta.cuh"

constexpr int pairThreads = 256, pairWarps = pairThreads / 32;
constexpr int pairBandRows = 16; // rows of a warp
constexpr int pairNumbers = 64;  // of keys that are in shared memory at a time, at most

// A ChunkPairs is the shared memory of a block: where the rows of a chunk are, and some parts of its
// keys and queries.
struct ChunkPairs {
  const float *row[chunkTokens];
  alignas(16) float keys[chunkTokens][pairNumbers + 4], queries[chunkTokens][pairNumbers + 4];
};

// addPairs adds the products of a warp's rows with the first 16*N keys of the chunk, over the parts in
// shared memory. A lane has every second row and every 16th key.
template <int N> INLINE void addPairs(const ChunkPairs &s, float (&total)[pairBandRows / 2][4], bool query, int band, int parts, int each) {
  const int lane = tidX() % 32;
  const float *rows = (query ? s.queries : s.keys)[band * pairBandRows + lane % 2], *keys = s.keys[lane / 2];
  constexpr int stride = pairNumbers + 4;
  for (int p = 0; p < parts; p++) {
    float sum[pairBandRows / 2][N] = {};
    _Pragma("unroll 1") for (int d = p * each; d < (p + 1) * each; d += 4) {
      float4 y[N];
      UNROLL for (int j = 0; j < N; j++) y[j] = fourAt(keys + 16 * j * stride + d);
      UNROLL for (int i = 0; i < pairBandRows / 2; i++) {
        const float4 x = fourAt(rows + 2 * i * stride + d);
        UNROLL for (int e = 0; e < 4; e++) {
          UNROLL for (int j = 0; j < N; j++) sum[i][j] = fma(x[e], y[j][e], sum[i][j]);
        }
      }
    }
    UNROLL for (int i = 0; i < pairBandRows / 2; i++) {
      UNROLL for (int j = 0; j < N; j++) total[i][j] = total[i][j] + sum[i][j];
    }
  }
}

// chunkPairs writes the products of 64 tokens, but for sequences with few rows, which pairs
// computes. The first warps have keys, the others queries. Each scheduler of the multiprocessor has a
// warp of either, one with early and one with late rows, so that all have as many products.
INLINE void chunkPairs(const DeltaArgs &a) {
  __shared__ ChunkPairs s;
  waitForPrevious();
  allowNext();
  const int which = blockY(), count = minOf(*a.count, (blockX() + 1) * chunkTokens), each = partOf(a.keyDim);
  const int parts = 2 * each > pairNumbers ? 1 : 2, span = parts * each;
  const DeltaHead head(a, a.tiled ? which : which * (a.heads / a.keyHeads));
  const int warp = tidX() / 32, lane = tidX() % 32;
  const bool query = warp >= pairWarps / 2;
  const int band = query ? pairWarps - 1 - warp : warp;
  int n = 0; // rows of one chunk
  for (int token = blockX() * chunkTokens; token < count; token += n) {
    const int seq = a.sequence[token], end = a.starts[seq + 1];
    n = end - token;
    if (end - a.starts[seq] <= fewRows) continue;
    const Place place = a.table.places[token];
    const int at = place.position % chunkTokens, begin = place.position - at;
    n = minOf(minOf(count, end) - token, chunkTokens - at);
    syncBlock();
    if (tidX() < at + n) s.row[tidX()] = rowAt(a.rows, a.table, place.shift, begin + tidX());
    const bool mine = band * pairBandRows < at + n && (band + 1) * pairBandRows > at;
    float total[pairBandRows / 2][4] = {};
    _Pragma("unroll 1") for (int from = 0; from < a.keyDim; from += span) {
      syncBlock();
      float v[2][chunkTokens / pairWarps][pairNumbers / 32];
      UNROLL for (int k = 0; k < chunkTokens / pairWarps; k++) {
        const int j = warp + k * pairWarps, row = minOf(j, at + n - 1);
        const float *of[2] = {s.row[row] + head.k, a.queries + (s64(token + maxOf(row - at, 0)) * a.keyHeads + head.key) * a.keyDim};
        UNROLL for (int q = 0; q < 2; q++) {
          UNROLL for (int e = 0; e < pairNumbers / 32; e++) v[q][k][e] = of[q][minOf(from + lane + 32 * e, a.keyDim - 1)];
        }
      }
      UNROLL for (int k = 0; k < chunkTokens / pairWarps; k++) {
        UNROLL for (int e = 0; e < pairNumbers / 32; e++) {
          const int d = lane + 32 * e;
          if (d >= span) continue;
          const bool there = from + d < a.keyDim;
          s.keys[warp + k * pairWarps][d] = there ? v[0][k][e] : 0.0f, s.queries[warp + k * pairWarps][d] = there ? v[1][k][e] : 0.0f;
        }
      }
      syncBlock();
      if (!mine) continue;
      switch (band) {
      case 0: addPairs<1>(s, total, query, band, parts, each); break;
      case 1: addPairs<2>(s, total, query, band, parts, each); break;
      case 2: addPairs<3>(s, total, query, band, parts, each); break;
      default: addPairs<4>(s, total, query, band, parts, each);
      }
    }
    UNROLL for (int i = 0; i < pairBandRows / 2; i++) {
      const int row = band * pairBandRows + lane % 2 + 2 * i;
      if (row < at || row >= at + n) continue;
      float *to = a.pairs + ((s64(token + row - at) * gridY() + which) * 2 + (query ? 1 : 0)) * chunkTokens;
      UNROLL for (int j = 0; j < 4; j++) {
        if (lane / 2 + 16 * j <= row) to[lane / 2 + 16 * j] = total[i][j];
      }
    }
  }
}
