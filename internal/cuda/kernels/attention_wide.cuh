// Attention of many tokens on Hopper, to a KV cache of float16: the arithmetic of segment.cuh, on
// matrix instructions of a warpgroup.
//
// A tile has 128 rows: tokens of one sequence, each with the query heads of one key/value head.
// Four of a block's 12 warps copy keys and values to shared memory, a run of 32 positions at a
// time, as far ahead as the ring has room. The other eight are two groups of 64 rows. While a group
// adds a run to its sums, the products with the keys of its next run are computed. With heads of
// 256 numbers a tile has 64 rows, and each group has 128 columns of their values: the sums of all
// columns exceed a group's registers. Both groups compute the products with the keys.
#pragma once
#include "hopper.cuh"
#include "matrix.cuh"
#include "tiles.cuh"

constexpr int groupRows = 64, wideTileThreads = 384;

template <int D> struct WideTile {
  static constexpr int columns = D > 128 ? 128 : D, rows = D > 128 ? groupRows : 2 * groupRows; // of a group, of the tile
  static constexpr int runBytes = runTokens * D * 2; // of the keys of a run, and of its values
  static constexpr int panelBytes = runTokens * 128; // of 64 elements of the values of a run
  static constexpr int stages = D > 128 ? 4 : 8, apart = columns + 4;
  static constexpr int keptBytes = groupRows * apart * 4; // the sums of a group over segments
  static constexpr int bytes = stages * 2 * runBytes + 2 * keptBytes + 1024;
};

// A Range is the first and the last run that some row sees.
struct Range {
  int first, last;
};

// rangeOf returns the range of n tokens that begin at this position.
INLINE Range rangeOf(const AttentionArgs &a, int position, int n) {
  if (n <= 0) return Range{0, -1};
  return Range{(a.window > 0 ? maxOf(0, position - a.window + 1) : 0) / runTokens, (position + n - 1) / runTokens};
}

// Stages is the ring of runs: the next stage, and the parity of its phase.
template <int D> struct Stages {
  u32 at, there, free; // of stage 0: its keys, followed by its values, and its barriers
  int stage = 0;
  u32 parity = 0;
  METHOD u32 keys() const { return at + stage * 2 * WideTile<D>::runBytes; }
  METHOD u32 values() const { return keys() + WideTile<D>::runBytes; }
  METHOD void awaitRun() const { awaitPhase(there + 8 * stage, parity); }
  METHOD void awaitRoom() const { awaitPhase(free + 8 * stage, parity ^ 1); }
  METHOD void leave() const {
    syncWarp();
    if (tidX() % 32 == 0) arrive(free + 8 * stage);
  }
  METHOD void next() {
    if (++stage == WideTile<D>::stages) stage = 0, parity ^= 1;
  }
};

// bringRuns copies the keys and values that a tile sees to the ring.
template <int D> INLINE void bringRuns(const AttentionArgs &a, const Share &share, const Tile &t, Stages<D> &ring) {
  using W = WideTile<D>;
  Pool pool = a.pool;
  pool.dim = D;
  const int thread = tidX(), last = t.position + t.n - 1, first = a.window > 0 ? maxOf(0, t.position - a.window + 1) : 0;
  const Range range = rangeOf(a, t.position, t.n);
  Slot ahead = slotOf(pool, a.table, t.shift, range.first * runTokens);
  _Pragma("unroll 1") for (int run = range.first; run <= range.last; run++) {
    const Slot slot = ahead;
    if (run < range.last) ahead = slotOf(pool, a.table, t.shift, (run + 1) * runTokens);
    ring.awaitRoom();
    const u32 barrier = ring.there + 8 * ring.stage;
    if (thread == 0) {
      arriveWith(barrier, W::runBytes);
      const u8 *from = pool.base + keyAt<CacheF16>(pool, slot, share.kvHead);
      if (pool.pageTokens == runTokens) {
        copyBulk(ring.keys(), from, W::runBytes, barrier);
      } else {
        _Pragma("unroll 1") for (int c = 0; c < D / 8; c++) copyBulk(ring.keys() + c * runTokens * 16, from + c * chunkApart<CacheF16>(pool), runTokens * 16, barrier);
      }
    }
    const u8 *from = pool.base + valueAt<CacheF16>(pool, slot, share.kvHead);
    UNROLL for (int i = 0; i < D / 32; i++) {
      const int at = thread + 128 * i, row = at / (D / 8), piece = at % (D / 8), position = run * runTokens + row;
      const bool seen = position >= first && position <= last;
      copyChunk(ring.values() + piece / 8 * W::panelBytes + row * 128 + (piece % 8 ^ row % 8) * 16, seen ? from + (row * D + 8 * piece) * 2 : from, seen);
    }
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
    ring.next();
  }
}

// attendRows computes the rows of a group.
template <int D> INLINE void attendRows(const AttentionArgs &a, const Share &share, const Tile &t, Stages<D> &ring, float *kept, int group) {
  using W = WideTile<D>;
  constexpr int V = W::columns;
  const int column = D > V ? V * group : 0, skip = D > V ? 0 : groupRows * group; // the group's columns and rows
  const int thread = tidX() % 128, warp = thread / 32, lane = tidX() % 32, g = lane / 4, two = lane % 4 * 2;
  const int rows = t.n * share.n;
  const auto tokenOf = [&](int row) ALWAYS { return t.token + row / share.n; };
  const auto headOf = [&](int row) ALWAYS { return share.head + row % share.n; };

  Seen seen[2];
  float top[2], sum[2], partTop[2], partSum[2]; // of all segments so far, and of this segment
  uint4 q[D / 16];
  {
    const float *from[2];
    UNROLL for (int r = 0; r < 2; r++) {
      const int row = skip + 16 * warp + g + 8 * r, at = t.position + row / share.n;
      const bool there = row < rows;
      seen[r] = there ? Seen{a.window > 0 ? maxOf(0, at - a.window + 1) : 0, at} : Seen{0, -1};
      from[r] = there ? a.q + s64(tokenOf(row)) * a.stride + headOf(row) * D : nullptr;
      top[r] = there && a.sinks ? a.sinks[headOf(row)] * log2e : -infinity, sum[r] = there && a.sinks ? 1 : 0;
      partTop[r] = -infinity, partSum[r] = 0;
    }
    UNROLL for (int k = 0; k < D / 16; k++) {
      float2 v[2][2] = {};
      UNROLL for (int r = 0; r < 2; r++) {
        if (!from[r]) continue;
        UNROLL for (int h = 0; h < 2; h++) v[r][h] = *reinterpret_cast<const float2 *>(from[r] + 16 * k + 8 * h + two);
      }
      q[k] = uint4{halvesOf(v[0][0].x, v[0][0].y), halvesOf(v[1][0].x, v[1][0].y), halvesOf(v[0][1].x, v[0][1].y), halvesOf(v[1][1].x, v[1][1].y)};
    }
  }
  float part[V / 2]; // sums of a segment, in the order of a product's accumulators
  UNROLL for (int c = 0; c < V / 2; c++) part[c] = 0;
  kept += thread;
  UNROLL for (int c = 0; c < V / 2; c++) kept[128 * c] = 0;

  const Range all = rangeOf(a, t.position, t.n);
  Range mine; // of the group
  int fullFrom, fullTo; // positions that all rows of the warp see
  {
    const int low = skip, high = minOf(low + groupRows, rows);
    mine = rangeOf(a, t.position + low / share.n, low < high ? (high - 1) / share.n - low / share.n + 1 : 0);
    const int from = low + 16 * warp, to = minOf(from + 15, rows - 1);
    fullFrom = a.window > 0 ? maxOf(0, t.position + to / share.n - a.window + 1) : 0, fullTo = t.position + from / share.n;
    if (from + 15 >= rows) fullTo = -1;
  }
  const float by = a.softcap > 0 ? 1.0f : a.scale * log2e;

  float x[16], value[V / 2];
  const auto multiplyKeys = [&](u32 at) ALWAYS {
    const u64 keys = piecesOfRows(at, runTokens * 16);
    UNROLL for (int i = 0; i < 16; i++) x[i] = 0;
    beginProducts();
    UNROLL for (int k = 0; k < D / 16; k++) multiplyRows<32, InF16>(x, q[k], keys + (2 * runTokens * 16 >> 4) * k);
    endProducts();
  };
  int run = all.first;
  // Skip runs that only the other group sees.
  for (; run < mine.first || (mine.last < mine.first && run <= all.last); run++) {
    ring.awaitRun();
    ring.leave();
    ring.next();
  }
  if (run > all.last) return; // the group has no rows
  ring.awaitRun();
  showCopies();
  multiplyKeys(ring.keys());
  Stages<D> now = ring;
  _Pragma("unroll 1") for (; run <= mine.last; run++) {
    const int position = run * runTokens;
    awaitProducts<0>();
    hold(x);
    if (position < fullFrom || position + runTokens - 1 > fullTo) {
      UNROLL for (int r = 0; r < 2; r++) {
        const int from = seen[r].first - position - two, to = seen[r].last - position - two;
        UNROLL for (int n = 0; n < 4; n++) {
          UNROLL for (int i = 0; i < 2; i++) {
            if (8 * n + i < from || 8 * n + i > to) x[4 * n + 2 * r + i] = -infinity;
          }
        }
      }
    }
    float(&y)[4][4] = reinterpret_cast<float(&)[4][4]>(x);
    if (a.softcap > 0) capProducts(y, a);
    float runTop[2], f[2], h[2];
    u32 weight[2][4];
    UNROLL for (int r = 0; r < 2; r++) {
      float most = -infinity;
      UNROLL for (int n = 0; n < 4; n++) most = maxOf(most, maxOf(y[n][2 * r], y[n][2 * r + 1]));
      most = maxOf(most, shuffleXor(most, 1));
      most = maxOf(most, shuffleXor(most, 2));
      runTop[r] = seen[r].some(position, runTokens) ? topOf(most, by) : 0.0f;
      UNROLL for (int n = 0; n < 4; n++) {
        weight[n / 2][n % 2 * 2 + r] = halvesOf(weightOf(y[n][2 * r], by, runTop[r]), weightOf(y[n][2 * r + 1], by, runTop[r]));
      }
    }

    now = ring;
    const u64 values = columnsOfTiles(now.values() + column / 64 * W::panelBytes, W::panelBytes);
    beginProducts();
    multiplyColumns<V, false>(value, uint4{weight[0][0], weight[0][1], weight[0][2], weight[0][3]}, values);
    multiplyColumns<V, true>(value, uint4{weight[1][0], weight[1][1], weight[1][2], weight[1][3]}, values + (2048 >> 4));
    endProducts();
    ring.next();
    const bool more = run < mine.last;
    if (more) ring.awaitRun();
    showCopies();
    multiplyKeys(more ? ring.keys() : now.keys()); // after the last run the result is unused
    float runSum[4] = {};
    UNROLL for (int m = 0; m < 2; m++) addProducts(runSum, weight[m], halfOnes, halfOnes);
    UNROLL for (int r = 0; r < 2; r++) {
      const bool some = seen[r].some(position, runTokens);
      const float most = some ? maxOf(partTop[r], runTop[r]) : partTop[r];
      f[r] = some ? exp2Of(partTop[r] - most) : 1.0f, h[r] = some ? exp2Of(runTop[r] - most) : 0.0f;
      partTop[r] = most;
      partSum[r] = fma(runSum[2 * r], h[r], partSum[r] * f[r]);
    }
    const bool same = ballot(f[0] != 1 || f[1] != 1) == 0;
    awaitProducts<1>();
    hold(value);
    if (more) now.leave();
    if (same) { // the usual case: all factors are 1
      UNROLL for (int c = 0; c < V / 2; c++) part[c] = fma(value[c], h[c / 2 % 2], part[c]);
    } else {
      UNROLL for (int c = 0; c < V / 2; c++) part[c] = fma(value[c], h[c / 2 % 2], part[c] * f[c / 2 % 2]);
    }

    if (run % runs != runs - 1 && more) continue; // the segment continues
    const int begin = position / segmentTokens * segmentTokens;
    UNROLL for (int r = 0; r < 2; r++) {
      const bool some = seen[r].some(begin, segmentTokens);
      const float most = some ? maxOf(top[r], partTop[r]) : top[r];
      f[r] = some ? exp2Of(top[r] - most) : 1.0f, h[r] = some ? exp2Of(partTop[r] - most) : 0.0f;
      top[r] = most;
      sum[r] = fma(partSum[r], h[r], sum[r] * f[r]);
      partTop[r] = -infinity, partSum[r] = 0;
    }
    UNROLL for (int c = 0; c < V / 2; c++) {
      kept[128 * c] = fma(part[c], h[c / 2 % 2], kept[128 * c] * f[c / 2 % 2]);
      part[c] = 0;
    }
  }
  awaitProducts<0>();
  hold(x);
  now.leave();
  // Skip runs that only the other group sees.
  for (; run <= all.last; run++) {
    ring.awaitRun();
    ring.leave();
    ring.next();
  }

  UNROLL for (int c = 0; c < V / 2; c++) part[c] = divide(kept[128 * c], sum[c / 2 % 2]);
  kept -= thread;
  const auto syncGroup = [&]() ALWAYS { asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory"); };
  syncGroup();
  UNROLL for (int n = 0; n < V / 8; n++) {
    UNROLL for (int r = 0; r < 2; r++) {
      *reinterpret_cast<float2 *>(kept + (16 * warp + g + 8 * r) * W::apart + 8 * n + two) = float2{part[4 * n + 2 * r], part[4 * n + 2 * r + 1]};
    }
  }
  syncGroup();
  constexpr int lanes = V / 4; // of a row
  _Pragma("unroll 1") for (int i = thread / lanes; i < groupRows; i += 128 / lanes) {
    const int row = skip + i, at = thread % lanes * 4, cols = a.heads * D;
    if (row >= rows) break;
    storeFour(a.out, tokenOf(row), headOf(row) * D + column + at, *reinterpret_cast<const float4 *>(kept + i * W::apart + at));
    if ((headOf(row) + 1) * D == cols && column + V == D) { // also write the padding
      for (int c = cols + at; c < a.out.stride; c += V) storeFour(a.out, tokenOf(row), c, float4{});
    }
  }
  syncGroup(); // all threads have read kept
}

template <int D> INLINE void attendWide(const AttentionArgs &a) {
  using W = WideTile<D>;
  extern __shared__ u8 raw[];
  alignas(8) __shared__ u64 barriers[2 * W::stages];
  u8 *shared = raw + (-sharedAt(raw) & 1023);
  float *kept = reinterpret_cast<float *>(shared + W::stages * 2 * W::runBytes);
  Stages<D> ring{sharedAt(shared), sharedAt(barriers), sharedAt(barriers) + 8 * W::stages};
  if (tidX() == 0) {
    for (int i = 0; i < W::stages; i++) makeBarrier(ring.there + 8 * i, 128 + 1), makeBarrier(ring.free + 8 * i, 8);
    showBarriers();
  }
  syncBlock();
  const Share share(a, blockX(), W::rows);
  waitForPrevious();
  allowNext();
  // Later tiles see more positions, so they are computed first.
  Tile t;
  if (tidX() < 128) {
    fewerRegisters<(D > 128 ? 24 : 40)>();
    for (int index = gridY() - 1 - blockY(); tileOf(t, a, index, share.tokens); index += gridY()) bringRuns<D>(a, share, t, ring);
    return;
  }
  moreRegisters<(D > 128 ? 240 : 232)>();
  const int group = tidX() / 128 - 1;
  kept += group * (W::keptBytes / 4);
  for (int index = gridY() - 1 - blockY(); tileOf(t, a, index, share.tokens); index += gridY()) attendRows<D>(a, share, t, ring, kept, group);
}

// grid (kvHeads*ceil(heads/kvHeads/128), tiles of 128 rows or fewer, or 64), 384 threads, shared memory
// of WideTile::bytes; pages hold whole runs.
// cost: arithmetic. Two groups share the matrix units: one multiplies while the other computes
// softmax weights.
#define ATTENTION_WIDE(name, dim) \
  extern "C" __global__ void __launch_bounds__(wideTileThreads, 1) name(const AttentionArgs a) { attendWide<dim>(a); }
