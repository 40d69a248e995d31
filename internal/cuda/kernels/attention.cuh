// Attention of tokens, whose keys and values their pages hold, on matrix instructions.
#pragma once
#include "eight.cuh"
#include "tiles.cuh"

// --- Heads of any length

// attendEight does tiles of eight rows, a segment after the other.
template <class C> INLINE void attendEight(const AttentionArgs &a) {
  __shared__ Eight<0> s;
  const Share share(a, blockX(), eightRows);
  waitForPrevious();
  allowNext();
  const int lane = tidX() % 32, dim = a.dim, steps = (dim + 15) / 16;
  Tile t;
  for (int index = blockY(); tileOf(t, a, index, share.tokens); index += gridY()) {
    const auto tokenOf = [&](int row) ALWAYS { return t.token + row / share.n; };
    const auto headOf = [&](int row) ALWAYS { return share.head + row % share.n; };
    const int rows = t.n * share.n;
    syncBlock(); // the tile before is stored
    for (int i = tidX(); i < eightRows * 16 * steps; i += blockThreads) {
      const int row = i / (16 * steps), at = i % (16 * steps);
      s.q[row][at] = row < rows && at < dim ? floatToHalf(a.q[s64(tokenOf(row)) * a.stride + headOf(row) * dim + at]) : u16(0);
    }
    Seen seen[2];
    Part all[Eight<0>::tiles][4];
    UNROLL for (int h = 0; h < 2; h++) {
      const int row = lane % 4 * 2 + h, last = t.position + row / share.n;
      seen[h] = row < rows ? Seen{a.window > 0 ? maxOf(0, last - a.window + 1) : 0, last} : Seen{0, -1};
      UNROLL for (int m = 0; m < Eight<0>::tiles; m++) {
        UNROLL for (int i = h; i < 4; i += 2) {
          all[m][i] = Part{-infinity, 0, 0};
          if (a.sinks && row < rows) all[m][i] = Part{a.sinks[headOf(row)] * log2e, 1, 0};
        }
      }
    }
    const int last = t.position + t.n - 1;
    const Reach<C> reach{a.window > 0 ? maxOf(0, t.position - a.window + 1) : 0, last, nullptr, nullptr};
    const Source source{a.pool, a.table, t.shift, share.kvHead};
    _Pragma("unroll 1") for (int segment = reach.first / segmentTokens; segment <= last / segmentTokens; segment++) {
      float value[Eight<0>::tiles][4], sum[4], top[2];
      attendInTurn<C>(value, sum, top, s, a, source, segment, reach, seen);
      eachValue<0>(steps, [&](int, int, int m, int i) ALWAYS {
        if (seen[i % 2].some(segment)) join(all[m][i], Part{top[i % 2], sum[i % 2], value[m][i]});
      });
    }
    eachValue<0>(steps, [&](int row, int d, int m, int i) ALWAYS {
      if (row < rows && d < dim) s.value[row][d] = all[m][i].value;
      if (row < rows && d == 0) s.sum[row] = all[m][i].sum;
    });
    syncBlock();
    storeEight(s, a.out, rows, dim, tokenOf, headOf);
  }
}

// grid (kvHeads*ceil(heads/kvHeads/8), tiles of eight rows or fewer), 256 threads,
// Eight<0>::bytes of shared memory.
// cost: memory. Keys and values are read for eight rows at a time, and waited for.
#define ATTENTION_ANY(name, cache) \
  extern "C" __global__ void __launch_bounds__(blockThreads) name(const AttentionArgs a) { attendEight<cache>(a); }

// --- Heads of 64 and 128

constexpr int tileRowCount = 64; // rows of a tile, 16 for each warp
constexpr int tileThreads = 128;
constexpr int pieceTokens = 64; // positions that come to shared memory together
constexpr int pieces = segmentTokens / pieceTokens;

// Pieces lie in a ring: keys of a segment, then its values, then those of the next. All
// but one are on their way.
constexpr int ringPieces = 4;

// A Piece is which one is next: of keys or values, and its number in its segment. first and
// last are positions.
struct Piece {
  int segment, first, last, at;
  bool values;
  METHOD static int lowest(int segment, int first) { return maxOf(first - segment * segmentTokens, 0) / pieceTokens; }
  METHOD static int highest(int segment, int last) { return minOf(last - segment * segmentTokens, segmentTokens - 1) / pieceTokens; }
  METHOD bool there(int end) const { return segment < end; }
  METHOD void next() {
    if (++at <= highest(segment, last)) return;
    if (values) segment++;
    values = !values, at = lowest(segment, first);
  }
};

// partialOf is where a segment of a row is kept, number i of those that its tile sees.
INLINE float *partialOf(const AttentionArgs &a, int token, int head, int i) {
  return a.partial + ((s64(token) * a.heads + head) * a.maxSegments + i) * (a.dim + 2);
}

// attendTile does a tile, or of one that blocks share a segment; who ends last joins them.
template <class C, int D> INLINE void attendTile(const AttentionArgs &a, const Share &share, const Tile &t, int index, int *drawn) {
  constexpr int chunks = D / 8, pieceBytes = 2 * pieceTokens * D, queryBytes = 2 * tileRowCount * D;
  const int warp = tidX() / 32, lane = tidX() % 32, g = lane / 4, rows = t.n * share.n;
  const u32 queries = sharedBands(), ring = queries + queryBytes;
  float *results = reinterpret_cast<float *>(sharedBytes() + queryBytes); // [64][D+4], in the place of the ring
  constexpr int apart = D + 4;
  const auto tokenOf = [&](int row) ALWAYS { return t.token + row / share.n; };
  const auto headOf = [&](int row) ALWAYS { return share.head + row % share.n; };

  const int last = t.position + t.n - 1, first = a.window > 0 ? maxOf(0, t.position - a.window + 1) : 0;
  const int begin = first / segmentTokens, segments = last / segmentTokens - begin + 1;
  const bool split = a.split && segments > 1;
  if (blockZ() >= (split ? segments : 1)) return;
  const int from = split ? begin + blockZ() : begin, end = split ? from + 1 : begin + segments;

  syncBlock(); // the tile before is stored
  const Source source{a.pool, a.table, t.shift, share.kvHead};
  Piece ahead{from, first, last, Piece::lowest(from, first), false};
  int slotAhead = 0, slot = 0;
  const auto load = [&]() ALWAYS {
    if (ahead.there(end)) {
      const int from = ahead.segment * segmentTokens + ahead.at * pieceTokens;
      const Mine mine = mineOf<pieceTokens>(source, from, first, last + 1);
      bring<C, D, pieceTokens, tileThreads>(ring + slotAhead * pieceBytes, source, mine, !ahead.values, from, first, last + 1, -1);
      ahead.next();
    }
    endCopies();
    slotAhead = (slotAhead + 1) % ringPieces;
  };
  // take waits for the next piece and asks for another in the place of the one before.
  const auto take = [&]() ALWAYS {
    waitCopies<ringPieces - 2>();
    syncBlock();
    load();
    const u32 at = ring + slot * pieceBytes;
    slot = (slot + 1) % ringPieces;
    return at;
  };
  _Pragma("unroll 1") for (int i = 0; i < ringPieces - 1; i++) load();
  {
    constexpr int each = tileThreads / tileRowCount, some = 4; // threads of a row; chunks asked for at a time
    const int row = tidX() % tileRowCount;
    const float4 *q = reinterpret_cast<const float4 *>(row < rows ? a.q + s64(tokenOf(row)) * a.stride + headOf(row) * D : a.q);
    _Pragma("unroll 1") for (int c = tidX() / tileRowCount; c < chunks; c += some * each) {
      float4 low[some], high[some];
      UNROLL for (int i = 0; i < some; i++) low[i] = q[2 * (c + i * each)], high[i] = q[2 * (c + i * each) + 1];
      UNROLL for (int i = 0; i < some; i++) {
        uint4 v{halvesOf(low[i].x, low[i].y), halvesOf(low[i].z, low[i].w), halvesOf(high[i].x, high[i].y), halvesOf(high[i].z, high[i].w)};
        storeChunk(bandAt<tileRowCount>(queries, c + i * each, row), row < rows ? v : uint4{});
      }
    }
  }

  // A lane has rows g and g+8 of its warp's.
  Seen seen[2];
  float allTop[2], allSum[2], all[D / 8][4];
  int lowest, highest; // all positions between these are seen by all rows of the warp
  UNROLL for (int r = 0; r < 2; r++) {
    const int row = 16 * warp + g + 8 * r, at = t.position + row / share.n;
    seen[r] = row < rows ? Seen{a.window > 0 ? maxOf(0, at - a.window + 1) : 0, at} : Seen{0, -1};
    allTop[r] = -infinity, allSum[r] = 0;
    if (a.sinks && row < rows) allTop[r] = a.sinks[headOf(row)] * log2e, allSum[r] = 1;
  }
  {
    const int low = 16 * warp / share.n, high = minOf(16 * warp + 15, rows - 1) / share.n;
    highest = t.position + low, lowest = a.window > 0 ? maxOf(0, t.position + high - a.window + 1) : 0;
  }
  UNROLL for (int c = 0; c < D / 8; c++) {
    UNROLL for (int i = 0; i < 4; i++) all[c][i] = 0;
  }
  const float by = a.softcap > 0 ? 1.0f : a.scale * log2e;
  const u32 queryFrom = bandAt<tileRowCount>(queries, lane / 16, 16 * warp + lane % 16);
  const u32 keyFrom = (lane / 8 % 2 * pieceTokens + lane % 8 + lane / 16 * 8) * 16;
  const u32 valueFrom = (lane / 16 * pieceTokens + lane % 16) * 16;

  _Pragma("unroll 1") for (int segment = from; segment < end; segment++) {
    const int lo = Piece::lowest(segment, first), hi = Piece::highest(segment, last);
    float x[segmentTokens / 8][4]; // products, by 8 positions
    UNROLL for (int n = 0; n < segmentTokens / 8; n++) {
      UNROLL for (int i = 0; i < 4; i++) x[n][i] = -infinity;
    }
    _Pragma("unroll 1") for (int at = lo; at <= hi; at++) {
      const u32 keys = take() + keyFrom;
      UNROLL for (int b = 0; b < pieces; b++) {
        if (at != b) continue;
        UNROLL for (int n = 0; n < 8; n++) {
          UNROLL for (int i = 0; i < 4; i++) x[8 * b + n][i] = 0;
        }
        u32 q[2][4], m[2][4][4]; // of a step and of the next
        const auto fetch = [&](int k) ALWAYS {
          loadMatrices(q[k % 2], queryFrom + 2 * k * tileRowCount * 16);
          UNROLL for (int n = 0; n < 4; n++) loadMatrices(m[k % 2][n], keys + (2 * k * pieceTokens + 16 * n) * 16);
        };
        fetch(0);
        UNROLL for (int k = 0; k < D / 16; k++) {
          if (k + 1 < D / 16) fetch(k + 1);
          UNROLL for (int n = 0; n < 8; n++) addProducts(x[8 * b + n], q[k % 2], m[k % 2][n / 2][n % 2 * 2], m[k % 2][n / 2][n % 2 * 2 + 1]);
        }
      }
    }
    if (segment * segmentTokens < lowest || (segment + 1) * segmentTokens - 1 > highest) {
      UNROLL for (int r = 0; r < 2; r++) {
        const int from = seen[r].first - segment * segmentTokens - lane % 4 * 2, to = seen[r].last - segment * segmentTokens - lane % 4 * 2;
        UNROLL for (int n = 0; n < segmentTokens / 8; n++) {
          UNROLL for (int i = 0; i < 2; i++) {
            if (8 * n + i < from || 8 * n + i > to) x[n][2 * r + i] = -infinity;
          }
        }
      }
    }
    if (a.softcap > 0) capProducts(x, a);

    float top[2];
    UNROLL for (int r = 0; r < 2; r++) {
      float most = -infinity;
      UNROLL for (int n = 0; n < segmentTokens / 8; n++) most = maxOf(most, maxOf(x[n][2 * r], x[n][2 * r + 1]));
      most = maxOf(most, shuffleXor(most, 1));
      most = maxOf(most, shuffleXor(most, 2));
      top[r] = seen[r].some(segment) ? topOf(most, by) : 0.0f;
    }
    u32 weight[segmentTokens / 16][4];
    UNROLL for (int n = 0; n < segmentTokens / 8; n++) {
      UNROLL for (int r = 0; r < 2; r++) {
        weight[n / 2][n % 2 * 2 + r] = halvesOf(weightOf(x[n][2 * r], by, top[r]), weightOf(x[n][2 * r + 1], by, top[r]));
      }
    }

    float value[D / 8][4], sum[4] = {};
    UNROLL for (int c = 0; c < D / 8; c++) {
      UNROLL for (int i = 0; i < 4; i++) value[c][i] = 0;
    }
    constexpr int groups = D / 64; // of 64 numbers, in each step of 16 positions
    _Pragma("unroll 1") for (int at = lo; at <= hi; at++) {
      const u32 values = take() + valueFrom;
      UNROLL for (int b = 0; b < pieces; b++) {
        if (at != b) continue;
        u32 m[2][4][4];
        const auto fetch = [&](int u) ALWAYS {
          UNROLL for (int c = 0; c < 4; c++) loadTransposed(m[u % 2][c], values + ((u % groups * 8 + 2 * c) * pieceTokens + u / groups * 16) * 16);
        };
        fetch(0);
        UNROLL for (int u = 0; u < pieceTokens / 16 * groups; u++) {
          if (u + 1 < pieceTokens / 16 * groups) fetch(u + 1);
          const u32 (&w)[4] = weight[4 * b + u / groups];
          if (u % groups == 0) addProducts(sum, w, halfOnes, halfOnes);
          UNROLL for (int c = 0; c < 8; c++) addProducts(value[u % groups * 8 + c], w, m[u % 2][c / 2][c % 2 * 2], m[u % 2][c / 2][c % 2 * 2 + 1]);
        }
      }
    }

    UNROLL for (int r = 0; r < 2; r++) {
      if (!seen[r].some(segment)) continue;
      if (split) {
        const int row = 16 * warp + g + 8 * r;
        float *p = partialOf(a, tokenOf(row), headOf(row), segment - begin);
        if (lane % 4 == 0) p[0] = top[r], p[1] = sum[2 * r];
        UNROLL for (int c = 0; c < D / 8; c++) *reinterpret_cast<float2 *>(p + 2 + 8 * c + lane % 4 * 2) = float2{value[c][2 * r], value[c][2 * r + 1]};
        continue;
      }
      const float most = maxOf(allTop[r], top[r]), f = exp2Of(allTop[r] - most), h = exp2Of(top[r] - most);
      allTop[r] = most;
      allSum[r] = fma(sum[2 * r], h, allSum[r] * f);
      UNROLL for (int c = 0; c < D / 8; c++) {
        UNROLL for (int i = 2 * r; i < 2 * r + 2; i++) all[c][i] = fma(value[c][i], h, all[c][i] * f);
      }
    }
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
    waitCopies<0>();
    syncBlock(); // the last piece is read
    UNROLL for (int r = 0; r < 2; r++) {
      float *to = results + (16 * warp + g + 8 * r) * apart + lane % 4 * 2;
      UNROLL for (int c = 0; c < D / 8; c++) {
        UNROLL for (int i = 0; i < 2; i++) to[8 * c + i] = divide(all[c][2 * r + i], allSum[r]);
      }
    }
  }
  syncBlock();
  // A warp writes 128 columns at a time where heads make as many.
  constexpr int together = 128 / D;
  if (share.n % together == 0) {
    const int head = lane / (D / 4), at = lane % (D / 4) * 4, cols = a.heads * D;
    _Pragma("unroll 1") for (int row = warp * together; row < rows; row += tileThreads / 32 * together) {
      const float4 v = *reinterpret_cast<const float4 *>(results + (row + head) * apart + at);
      storeFour(a.out, tokenOf(row), headOf(row) * D + 4 * lane, lane, v);
      if (headOf(row) * D + 128 == cols && cols % 256 != 0) storeFour(a.out, tokenOf(row), cols + 4 * lane, lane, float4{});
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
  // The later a tile stands the more it sees: those come first.
  Tile t;
  for (int index = gridY() - 1 - blockY(); tileOf(t, a, index, share.tokens); index += gridY()) attendTile<C, D>(a, share, t, index, &drawn);
}

// grid (kvHeads*ceil(heads/kvHeads/64), tiles of 64 rows or fewer, split ? segments : 1),
// 128 threads, shared memory for 64 queries and 4 pieces of 64 keys or values.
// cost: arithmetic. A warp has the products of 16 rows and a segment in registers; keys
// and values come from shared memory once for each warp.
#define ATTENTION(name, cache, dim) \
  extern "C" __global__ void __launch_bounds__(tileThreads, 2) name(const AttentionArgs a) { attendTiles<cache, dim>(a); }
