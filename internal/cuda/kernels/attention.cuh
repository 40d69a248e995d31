// Attention on matrix instructions, of tokens whose keys and values are in KV cache pages.
#pragma once
#include "band.cuh"
#include "eight.cuh"
#include "tiles.cuh"

// --- Heads of any length

// attendEight computes tiles of eight rows, segment by segment.
template <class C> INLINE void attendEight(const AttentionArgs &a) {
  using E = Eight<0>;
  __shared__ E s;
  const Share share(a, blockX(), eightRows);
  waitForPrevious();
  allowNext();
  const int warp = tidX() / 32, lane = tidX() % 32, dim = a.dim;
  Tile t;
  for (int index = blockY(); tileOf(t, a, index, share.tokens); index += gridY()) {
    const auto tokenOf = [&](int row) ALWAYS { return t.token + row / share.n; };
    const auto headOf = [&](int row) ALWAYS { return share.head + row % share.n; };
    const int rows = t.n * share.n;
    const auto seenOf = [&](int row) ALWAYS {
      const int last = t.position + row / share.n;
      return row < rows ? Seen{a.window > 0 ? maxOf(0, last - a.window + 1) : 0, last} : Seen{0, -1};
    };
    syncBlock(); // all warps are done with the previous tile
    for (int i = tidX(); i < eightRows * (E::dim + 16); i += blockThreads) {
      const int row = i / (E::dim + 16), at = i % (E::dim + 16);
      s.q[row][at] = row < rows && at < dim ? floatToHalf(a.q[s64(tokenOf(row)) * a.stride + headOf(row) * dim + at]) : u16(0);
    }
    const Seen seen[2] = {seenOf(lane % 4 * 2), seenOf(lane % 4 * 2 + 1)};
    Part all[E::count];
    UNROLL for (int k = 0; k < E::count; k++) {
      all[k] = Part{-infinity, 0, 0};
      if (a.sinks && E::row(k) < rows) all[k] = Part{a.sinks[headOf(E::row(k))] * log2e, 1, 0};
    }
    const int last = t.position + t.n - 1, first = a.window > 0 ? maxOf(0, t.position - a.window + 1) : 0;
    const Source source{a.pool, a.table, t.shift, share.kvHead};
    _Pragma("unroll 1") for (int segment = first / segmentTokens; segment <= last / segmentTokens; segment++) {
      syncBlock();
      const int begin = segment * segmentTokens + warp * runTokens;
      Run<C, 0> run{};
      run.find(source, begin, maxOf(first - begin, 0), minOf(last + 1 - begin, runTokens), runTokens, nullptr, nullptr);
      Scores x{};
      Weights weight{};
      Values value[E::dim / 64] = {};
      float sum[4] = {}, top[2] = {-infinity, -infinity};
      if (run.lo < run.hi) {
        run.scores(x, source, s.q[lane / 4], dim);
        weigh(weight, top, x, a, begin, seen);
        addWeights(sum, weight);
        UNROLL for (int b = 0; b < E::dim / 64; b++) {
          if (64 * b < dim) run.values(value[b], source, weight, b, dim);
        }
      }
      UNROLL for (int p = 0; p < E::passes; p++) {
        if (p > 0) syncBlock();
        putRun(s, value, sum, top, rows, p);
        syncBlock();
        UNROLL for (int k = p * E::each; k < (p + 1) * E::each; k++) {
          if (E::row(k) >= rows || E::at(k) >= dim) continue;
          if (seenOf(E::row(k)).some(segment * segmentTokens, segmentTokens)) join(all[k], joined(s, E::row(k), E::at(k)));
        }
      }
    }
    float result[E::count];
    UNROLL for (int k = 0; k < E::count; k++) result[k] = divide(all[k].value, all[k].sum);
    storeNumbers<0, eightRows>(result, a.out, rows, dim, tokenOf, headOf);
  }
}

// grid (kvHeads*ceil(heads/kvHeads/8), tiles of eight rows or fewer), 256 threads, no dynamic
// shared memory.
// cost: memory. Keys and values are read for eight rows at a time, and the block waits for each
// load.
#define ATTENTION_ANY(name, cache) \
  extern "C" __global__ void __launch_bounds__(blockThreads) name(const AttentionArgs a) { attendEight<cache>(a); }

// --- Heads of 64 and 128

constexpr int tileRowCount = 64; // rows of a tile, 16 for each warp
constexpr int tileThreads = 128;
constexpr int pieceTokens = 64; // positions that are copied to shared memory together
constexpr int pieceRuns = pieceTokens / runTokens;

// A Piece is a piece of a segment, with the index at. The tile sees positions first to last.
struct Piece {
  int segment, first, last, at;
  METHOD static int lowest(int segment, int first) { return maxOf(first - segment * segmentTokens, 0) / pieceTokens; }
  METHOD static int highest(int segment, int last) { return minOf(last - segment * segmentTokens, segmentTokens - 1) / pieceTokens; }
  METHOD int begin() const { return segment * segmentTokens + at * pieceTokens; }
  METHOD void next() {
    if (++at > highest(segment, last)) segment++, at = lowest(segment, first);
  }
};

// A Softmax is a lane's part of rows g and g+8: elements 2t and 2t+1 of each 8.
template <int D> struct Softmax {
  float top[2], sum[2], value[D / 8][4];
  METHOD void clear() {
    UNROLL for (int r = 0; r < 2; r++) top[r] = -infinity, sum[r] = 0;
    UNROLL for (int c = 0; c < D / 8; c++) {
      UNROLL for (int i = 0; i < 4; i++) value[c][i] = 0;
    }
  }
  // factors sets the factors by which join multiplies row r and the part that it joins.
  METHOD void factors(float &mine, float &others, int r, float next, bool seen) {
    const float most = seen ? maxOf(top[r], next) : top[r];
    mine = seen ? exp2Of(top[r] - most) : 1.0f, others = seen ? exp2Of(next - most) : 0.0f;
    top[r] = most;
  }
};

// partialOf returns the partial result of a row for segment i, counted from its tile's first segment.
INLINE float *partialOf(const AttentionArgs &a, int token, int head, int i) {
  return a.partial + ((s64(token) * a.heads + head) * a.maxSegments + i) * (a.dim + 2);
}

// attendTile computes a tile, or one segment of it if blocks share the tile; the last block joins
// the segments.
//
// In a tile of a prefix the tokens are of several sequences, which see the same positions up to
// t.position: token i is members[t.token+i]. The parts of its rows are kept for decoding: one for
// each segment if blocks share them, else one part joined to the sinks.
template <class C, int D, bool PREFIX = false>
INLINE void attendTile(const AttentionArgs &a, const Share &share, const Tile &t, int index, int *drawn, const s32 *members = nullptr) {
  constexpr int pieceBytes = D / 8 * bandApart<pieceTokens>, queryBytes = 2 * tileRowCount * D;
  const int warp = tidX() / 32, lane = tidX() % 32, g = lane / 4, rows = t.n * share.n;
  const u32 queries = sharedAt(sharedBytes()), ring = queries + queryBytes;
  // [64][D+4]. They overwrite the ring.
  float *results = reinterpret_cast<float *>(sharedBytes() + queryBytes);
  constexpr int apart = D + 4;
  const auto tokenOf = [&](int row) ALWAYS { return PREFIX ? members[t.token + row / share.n] : t.token + row / share.n; };
  const auto headOf = [&](int row) ALWAYS { return share.head + row % share.n; };
  const auto lastOf = [&](int row) ALWAYS { return PREFIX ? t.position : t.position + row / share.n; };

  const int last = PREFIX ? t.position : t.position + t.n - 1, first = a.window > 0 ? maxOf(0, t.position - a.window + 1) : 0;
  const int begin = first / segmentTokens, segments = last / segmentTokens - begin + 1;
  const bool split = a.split && (PREFIX || segments > 1);
  if (blockZ() >= (split ? segments : 1)) return;
  const int from = split ? begin + blockZ() : begin, end = split ? from + 1 : begin + segments;

  syncBlock(); // the previous tile is stored
  const Source source{a.pool, a.table, t.shift, share.kvHead};
  // The keys and values of a piece are copied while the previous piece is computed. The pages of
  // its positions are looked up before that.
  Piece ahead{from, first, last, Piece::lowest(from, first)};
  Mine mine = mineOf<pieceTokens>(source, ahead.begin(), first, last + 1);
  int place = 0;
  const auto load = [&]() ALWAYS {
    if (ahead.segment >= end) return;
    const u32 to = ring + 2 * place * pieceBytes;
    bring<C, D, pieceTokens, tileThreads>(to, source, mine, true, ahead.begin(), first, last + 1);
    bring<C, D, pieceTokens, tileThreads>(to + pieceBytes, source, mine, false, ahead.begin(), first, last + 1);
    endCopies();
    ahead.next();
    if (ahead.segment < end) mine = mineOf<pieceTokens>(source, ahead.begin(), first, last + 1);
  };
  load();
  {
    // The columns of each 16 elements are in the order of the matrix instruction.
    // each: threads of a row; some: groups of 16 elements that a thread loads at a time
    constexpr int each = tileThreads / tileRowCount, some = 2;
    const int row = tidX() % tileRowCount;
    const float4 *q = reinterpret_cast<const float4 *>(row < rows ? a.q + s64(tokenOf(row)) * a.stride + headOf(row) * D : a.q);
    _Pragma("unroll 1") for (int c = tidX() / tileRowCount; c < D / 16; c += some * each) {
      float4 v[some][4];
      UNROLL for (int i = 0; i < some; i++) {
        UNROLL for (int j = 0; j < 4; j++) v[i][j] = q[4 * (c + i * each) + j];
      }
      UNROLL for (int i = 0; i < some; i++) {
        const u32 to = queries + (2 * (c + i * each) * tileRowCount + row) * 16;
        const uint4 low{halvesOf(v[i][0].x, v[i][0].y), halvesOf(v[i][1].x, v[i][1].y), halvesOf(v[i][2].x, v[i][2].y), halvesOf(v[i][3].x, v[i][3].y)};
        const uint4 high{halvesOf(v[i][0].z, v[i][0].w), halvesOf(v[i][1].z, v[i][1].w), halvesOf(v[i][2].z, v[i][2].w), halvesOf(v[i][3].z, v[i][3].w)};
        storeChunk(to, row < rows ? low : uint4{});
        storeChunk(to + tileRowCount * 16, row < rows ? high : uint4{});
      }
    }
  }

  // A lane has rows g and g+8 of its warp.
  Seen seen[2];
  Softmax<D> all;
  int fullFrom, fullTo, someFrom, someTo; // positions visible to all rows of the warp, and to some
  UNROLL for (int r = 0; r < 2; r++) {
    const int row = 16 * warp + g + 8 * r, at = lastOf(row);
    seen[r] = row < rows ? Seen{a.window > 0 ? maxOf(0, at - a.window + 1) : 0, at} : Seen{0, -1};
  }
  all.clear();
  UNROLL for (int r = 0; r < 2; r++) {
    const int row = 16 * warp + g + 8 * r;
    if (a.sinks && row < rows) all.top[r] = a.sinks[headOf(row)] * log2e, all.sum[r] = 1;
  }
  {
    const int low = lastOf(16 * warp), high = lastOf(minOf(16 * warp + 15, rows - 1));
    someFrom = a.window > 0 ? maxOf(0, low - a.window + 1) : 0, someTo = 16 * warp < rows ? high : -1;
    fullFrom = a.window > 0 ? maxOf(0, high - a.window + 1) : 0, fullTo = low;
  }
  const auto keep = [&](float *p, const Softmax<D> &s, int r) ALWAYS {
    if (lane % 4 == 0) p[0] = s.top[r], p[1] = s.sum[r];
    UNROLL for (int c = 0; c < D / 8; c++) {
      *reinterpret_cast<float2 *>(p + 2 + 8 * c + lane % 4 * 2) = float2{s.value[c][2 * r], s.value[c][2 * r + 1]};
    }
  };
  const float by = a.softcap > 0 ? 1.0f : a.scale * log2e;
  const u32 queryFrom = queries + (lane / 16 * tileRowCount + 16 * warp + lane % 16) * 16;
  const u32 keyFrom = lane % 4 / 2 * bandApart<pieceTokens> + g * 16 + lane % 2 * 8;
  const u32 valueFrom = lane / 16 * bandApart<pieceTokens> + lane % 16 * 16;

  _Pragma("unroll 1") for (int segment = from; segment < end; segment++) {
    const int lo = Piece::lowest(segment, first), hi = Piece::highest(segment, last);
    Softmax<D> part;
    part.clear();
    _Pragma("unroll 1") for (int at = lo; at <= hi; at++) {
      const int position = segment * segmentTokens + at * pieceTokens;
      const bool some = position <= someTo && position + pieceTokens > someFrom;
      waitCopies<0>();
      syncBlock();
      const u32 keys = ring + 2 * place * pieceBytes + keyFrom, values = ring + (2 * place + 1) * pieceBytes + valueFrom;
      place ^= 1;
      load();
      if (!some) continue;
      float x[pieceTokens / 8][4] = {}; // dot products, by 8 positions
      {
        u32 q[2][4]; // of this step and of the next
        uint2 m[2][pieceTokens / 8];
        const auto fetch = [&](int k) ALWAYS {
          loadMatrices(q[k % 2], queryFrom + 2 * k * tileRowCount * 16);
          UNROLL for (int n = 0; n < pieceTokens / 8; n++) m[k % 2][n] = loadHalf(keys + 2 * k * bandApart<pieceTokens> + 8 * n * 16);
        };
        fetch(0);
        UNROLL for (int k = 0; k < D / 16; k++) {
          if (k + 1 < D / 16) fetch(k + 1);
          UNROLL for (int n = 0; n < pieceTokens / 8; n++) addProducts(x[n], q[k % 2], m[k % 2][n].x, m[k % 2][n].y);
        }
        if (position < fullFrom || position + pieceTokens - 1 > fullTo) {
          UNROLL for (int r = 0; r < 2; r++) {
            const int from = seen[r].first - position - lane % 4 * 2, to = seen[r].last - position - lane % 4 * 2;
            UNROLL for (int n = 0; n < pieceTokens / 8; n++) {
              UNROLL for (int i = 0; i < 2; i++) {
                if (8 * n + i < from || 8 * n + i > to) x[n][2 * r + i] = -infinity;
              }
            }
          }
        }
        if (a.softcap > 0) capProducts(x, a);
      }

      float top[pieceRuns][2];
      u32 weight[pieceRuns][2][4];
      UNROLL for (int u = 0; u < pieceRuns; u++) {
        float(&y)[4][4] = reinterpret_cast<float(&)[4][4]>(x[4 * u]);
        UNROLL for (int r = 0; r < 2; r++) {
          float most = -infinity;
          UNROLL for (int n = 0; n < 4; n++) most = maxOf(most, maxOf(y[n][2 * r], y[n][2 * r + 1]));
          most = maxOf(most, shuffleXor(most, 1));
          most = maxOf(most, shuffleXor(most, 2));
          top[u][r] = seen[r].some(position + u * runTokens, runTokens) ? topOf(most, by) : 0.0f;
          UNROLL for (int n = 0; n < 4; n++) {
            weight[u][n / 2][n % 2 * 2 + r] = halvesOf(weightOf(y[n][2 * r], by, top[u][r]), weightOf(y[n][2 * r + 1], by, top[u][r]));
          }
        }
      }

      UNROLL for (int u = 0; u < pieceRuns; u++) {
        if (!(position + u * runTokens <= someTo && position + (u + 1) * runTokens > someFrom)) continue;
        float sum[4] = {}, f[2], h[2];
        UNROLL for (int m = 0; m < 2; m++) addProducts(sum, weight[u][m], halfOnes, halfOnes);
        UNROLL for (int r = 0; r < 2; r++) {
          part.factors(f[r], h[r], r, top[u][r], seen[r].some(position + u * runTokens, runTokens));
          part.sum[r] = fma(sum[2 * r], h[r], part.sum[r] * f[r]);
        }
        const bool same = ballot(f[0] != 1 || f[1] != 1) == 0;
        UNROLL for (int b = 0; b < D / 64; b++) {
          float value[8][4] = {};
          UNROLL for (int m = 0; m < 2; m++) {
            UNROLL for (int c = 0; c < 4; c++) {
              u32 v[4];
              loadTransposed(v, values + (8 * b + 2 * c) * bandApart<pieceTokens> + (u * runTokens + 16 * m) * 16);
              addProducts(value[2 * c], weight[u][m], v[0], v[1]);
              addProducts(value[2 * c + 1], weight[u][m], v[2], v[3]);
            }
          }
          if (same) { // the usual case: all factors are 1
            UNROLL for (int c = 0; c < 8; c++) {
              UNROLL for (int i = 0; i < 4; i++) part.value[8 * b + c][i] = fma(value[c][i], h[i / 2], part.value[8 * b + c][i]);
            }
            continue;
          }
          UNROLL for (int c = 0; c < 8; c++) {
            UNROLL for (int i = 0; i < 4; i++) part.value[8 * b + c][i] = fma(value[c][i], h[i / 2], part.value[8 * b + c][i] * f[i / 2]);
          }
        }
      }
    }

    UNROLL for (int r = 0; r < 2; r++) {
      const bool some = seen[r].some(segment * segmentTokens, segmentTokens);
      if (split) {
        if (!some) continue;
        const int row = 16 * warp + g + 8 * r;
        keep(PREFIX ? keptOf(a, tokenOf(row), headOf(row), segment) : partialOf(a, tokenOf(row), headOf(row), segment - begin), part, r);
        continue;
      }
      float f, h;
      all.factors(f, h, r, part.top[r], some);
      all.sum[r] = fma(part.sum[r], h, all.sum[r] * f);
      UNROLL for (int c = 0; c < D / 8; c++) {
        UNROLL for (int i = 2 * r; i < 2 * r + 2; i++) all.value[c][i] = fma(part.value[c][i], h, all.value[c][i] * f);
      }
    }
  }

  if constexpr (PREFIX) {
    UNROLL for (int r = 0; r < 2; r++) {
      const int row = 16 * warp + g + 8 * r;
      if (!split && row < rows) keep(keptOf(a, tokenOf(row), headOf(row), 0), all, r);
    }
    return;
  }
  if (split) {
    if (!drawsLast(a.tickets + s64(index) * gridX() + blockX(), segments, *drawn)) return;
    for (int e = tidX(); e < rows * D; e += tileThreads) {
      const int row = e / D, d = e % D, at = t.position + row / share.n;
      Part sumOf{-infinity, 0, 0};
      if (a.sinks) sumOf = Part{a.sinks[headOf(row)] * log2e, 1, 0};
      const int low = a.window > 0 ? maxOf(0, at - a.window + 1) / segmentTokens : 0;
      for (int i = low - begin; i <= at / segmentTokens - begin; i++) {
        const float *p = partialOf(a, tokenOf(row), headOf(row), i);
        join(sumOf, Part{p[0], p[1], p[2 + d]});
      }
      results[row * apart + d] = divide(sumOf.value, sumOf.sum);
    }
  } else {
    syncBlock(); // all warps have read the last piece
    UNROLL for (int r = 0; r < 2; r++) {
      float *to = results + (16 * warp + g + 8 * r) * apart + lane % 4 * 2;
      UNROLL for (int c = 0; c < D / 8; c++) {
        UNROLL for (int i = 0; i < 2; i++) to[8 * c + i] = divide(all.value[c][2 * r + i], all.sum[r]);
      }
    }
  }
  syncBlock();
  // A warp writes 128 columns at a time if the heads have that many.
  constexpr int together = 128 / D;
  if (share.n % together == 0) {
    const int head = lane / (D / 4), at = lane % (D / 4) * 4, cols = a.heads * D;
    _Pragma("unroll 1") for (int row = warp * together; row < rows; row += tileThreads / 32 * together) {
      const float4 v = *reinterpret_cast<const float4 *>(results + (row + head) * apart + at);
      storeFour(a.out, tokenOf(row), headOf(row) * D + 4 * lane, v);
      if (headOf(row) * D + 128 == cols && cols % 256 != 0) storeFour(a.out, tokenOf(row), cols + 4 * lane, float4{});
    }
    return;
  }
  for (int b = warp; b < rows * (D / 32); b += tileThreads / 32) {
    const int row = b / (D / 32), at = b % (D / 32);
    storeBlock(a.out, tokenOf(row), headOf(row) * (D / 32) + at, lane, results[row * apart + 32 * at + lane]);
  }
}

template <class C, int D> INLINE void attendTiles(const AttentionArgs &a) {
  __shared__ int drawn;
  const Share share(a, blockX(), tileRowCount);
  waitForPrevious();
  allowNext();
  // Later tiles see more positions, so they are computed first.
  Tile t;
  for (int index = gridY() - 1 - blockY(); tileOf(t, a, index, share.tokens); index += gridY()) attendTile<C, D>(a, share, t, index, &drawn);
}

// grid (kvHeads*ceil(heads/kvHeads/64), tiles of 64 rows or fewer, split ? segments : 1), 128
// threads, shared memory for 64 queries and 4 pieces of 64 keys or values.
// cost: arithmetic. A warp has in registers the products of 16 rows and a piece, and the sums of
// their segment and of the segments before. Each warp reads keys and values from shared memory
// once.
#define ATTENTION(name, cache, dim) \
  extern "C" __global__ void __launch_bounds__(tileThreads, (dim == 64 ? 3 : 2)) name(const AttentionArgs a) { attendTiles<cache, dim>(a); }
