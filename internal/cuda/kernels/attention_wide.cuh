// Attention of many tokens on Hopper, to a KV cache of float16: the arithmetic of segment.cuh, on
// matrix instructions of a warpgroup.
//
// A tile has 128 rows: tokens of one sequence, each with the query heads of one key/value head.
// Blocks take tiles in turn. Four of a block's 12 warps copy keys and values to shared memory, a
// step of one or two runs at a time, as far ahead as the ring has room. The other eight are two
// groups of 64 rows. A group computes the weights of a step and multiplies values, run by run; with
// those of the last run it begins the products with the keys of the next step. While one group
// computes weights, the matrix units work for the other. With heads of 256 numbers a tile has 64
// rows, and each group has 128 columns of their values: the sums of all columns exceed a group's
// registers. Both groups compute the products with the keys.
#pragma once
#include "hopper.cuh"
#include "matrix.cuh"
#include "tiles.cuh"

constexpr int groupRows = 64, wideTileThreads = 384, copyWarps = 4;

template <int D> struct WideTile {
  static constexpr int columns = D > 128 ? 128 : D, rows = D > 128 ? groupRows : 2 * groupRows; // of a group, of the tile
  static constexpr int runs = D > 128 ? 1 : 2, tokens = runs * runTokens;                      // of a step
  static constexpr int keyBytes = tokens * D * 2, chunkBytes = tokens * 16;                     // of a step's keys, and of 8 of their numbers
  static constexpr int panelBytes = tokens * 128;                                               // of 64 columns of a step's values
  static constexpr int stages = D < 128 ? 8 : 4;
  static_assert(stages % copyWarps == 0 && stages * 2 * keyBytes == 128 << 10); // wideRing of lower/attention.go
  static constexpr int queryBytes = groupRows * D * 2, keptBytes = groupRows * columns * 4; // of a group: its queries, and its sums over segments
  static constexpr int bytes = stages * 2 * keyBytes + rows / groupRows * queryBytes + 2 * keptBytes + 1024;
};

// A Range is the first and the last step that some row sees.
struct Range {
  int first, last;
};

// rangeOf returns the range of n tokens that begin at this position.
template <int D> INLINE Range rangeOf(const AttentionArgs &a, int position, int n) {
  constexpr int tokens = WideTile<D>::tokens;
  if (n <= 0) return Range{0, -1};
  return Range{(a.window > 0 ? maxOf(0, position - a.window + 1) : 0) / tokens, (position + n - 1) / tokens};
}

// Jobs are the tiles of a block. Later tiles of a sequence see more positions, so they come first,
// and blocks take them in ascending and descending order by turns.
struct Jobs {
  const AttentionArgs &a;
  int groups, count, rows;
  int round = 0;
  METHOD Jobs(const AttentionArgs &a, int rows) : a(a), rows(rows) {
    groups = a.kvHeads * ((a.heads / a.kvHeads + rows - 1) / rows);
    count = groups * uniform(tilesOf(a, Share(a, 0, rows).tokens, a.beside));
  }
  // next sets share and t to the next tile, and returns whether there is one.
  METHOD bool next(Share &share, Tile &t) {
    const int place = round % 2 == 0 ? blockX() : gridX() - 1 - blockX(), number = round * gridX() + place;
    round++;
    if (number >= count) return false;
    share = Share(a, number % groups, rows);
    tileOf(t, a, (count - 1 - number) / groups, share.tokens, a.beside);
    t = Tile{uniform(t.token), uniform(t.n), uniform(t.position), uniform(t.shift)};
    return true;
  }
};

// Stages is the ring of steps: the next stage, and the parity of its phase.
template <int D> struct Stages {
  u32 at, there, free; // of stage 0: its keys, followed by its values, and its barriers
  int stage = 0;
  u32 parity = 0;
  METHOD u32 keys() const { return at + stage * 2 * WideTile<D>::keyBytes; }
  METHOD u32 values() const { return keys() + WideTile<D>::keyBytes; }
  METHOD void await() const { awaitPhase(there + 8 * stage, parity); }
  METHOD void awaitRoom() const { awaitPhase(free + 8 * stage, parity ^ 1); }
  METHOD void leave() const {
    syncWarp();
    if (tidX() % 32 == 0) arrive(free + 8 * stage);
  }
  METHOD void next() {
    if (++stage == WideTile<D>::stages) stage = 0, parity ^= 1;
  }
  METHOD void back() {
    if (stage-- == 0) stage = WideTile<D>::stages - 1, parity ^= 1;
  }
};

// bring copies the keys and values that a tile sees to the ring. Each of the copyWarps warps copies
// every copyWarps-th step. A warp copies 32 pieces of 8 numbers at a time: one of the key of each
// position of a run, or those of the values of some positions. Values that no row sees are 0, as they
// are multiplied, too.
template <int D> INLINE void bring(const AttentionArgs &a, const Share &share, const Tile &t, Stages<D> &ring, int warp) {
  using W = WideTile<D>;
  constexpr int pieces = D / 8, rows = 32 / pieces; // pieces of a position; positions whose values are copied at a time
  const int lane = tidX() % 32, piece = lane % pieces, row = lane / pieces;
  const int last = t.position + t.n - 1, first = a.window > 0 ? maxOf(0, t.position - a.window + 1) : 0;
  const int tokens = a.pool.pageTokens, chunk = tokens * 16;
  const u8 *keysFrom = a.pool.base + s64(share.kvHead) * D * tokens * 2 + lane * 16;
  const u8 *valuesFrom = a.pool.base + (s64(a.pool.kvHeads) + share.kvHead) * D * tokens * 2 + lane * 16;
  const u32 keysTo = ring.at + lane * 16;
  u32 valuesTo[8 / rows]; // where pieces have other places in a row
  UNROLL for (int i = 0; i < 8 / rows; i++) valuesTo[i] = ring.at + W::keyBytes + piece / 8 * W::panelBytes + (row + rows * i) * 128 + (piece % 8 ^ (row + rows * i) % 8) * 16;
  const Range range = rangeOf<D>(a, t.position, t.n);
  const auto pageOf = [&](int run) ALWAYS { return a.table.pages[t.shift + minOf(maxOf(run * runTokens, first), last) / tokens]; };
  int ahead[W::runs];
  const auto find = [&](int step) ALWAYS {
    UNROLL for (int u = 0; u < W::runs; u++) ahead[u] = pageOf(step * W::runs + u);
  };
  int step = range.first;
  for (; step <= range.last && (ring.stage & (copyWarps - 1)) != warp; step++) ring.next();
  if (step <= range.last) find(step);
  _Pragma("unroll 1") for (; step <= range.last; step += copyWarps) {
    int page[W::runs];
    UNROLL for (int u = 0; u < W::runs; u++) page[u] = ahead[u];
    find(step + copyWarps);
    ring.awaitRoom();
    const u32 stage = ring.stage * 2 * W::keyBytes;
    UNROLL for (int u = 0; u < W::runs; u++) {
      const int position = (step * W::runs + u) * runTokens;
      const u32 to = stage + u * (runTokens * 16), valuesAt = stage + u * (runTokens * 128);
      const int at = position % tokens;
      const u8 *from = keysFrom + page[u] * a.pool.apart + at * 16, *values = valuesFrom + page[u] * a.pool.apart + at * (2 * D);
      const bool whole = position >= first && position + runTokens - 1 <= last;
      u32 keyTo = keysTo + to;
      _Pragma("unroll 4") for (int i = 0; i < pieces; i++, keyTo += W::chunkBytes, from += chunk) copyChunk(keyTo, from, position <= last);
      _Pragma("unroll 1") for (int i = 0; i < runTokens; i += 8, values += 8 * 2 * D) {
        UNROLL for (int j = 0; j < 8 / rows; j++) {
          const int seen = position + i + row + rows * j;
          copyChunk(valuesTo[j] + valuesAt + i * 128, values + j * 512, whole || (seen >= first && seen <= last));
        }
      }
    }
    arriveAfterCopies(ring.there + 8 * ring.stage);
    UNROLL for (int i = 0; i < copyWarps; i++) ring.next();
  }
  // The ring is where the next tile begins.
  for (; step > range.last + 1; step--) ring.back();
}

// attendRows computes the rows of a group. kept has room for their sums over segments.
template <int D> INLINE void attendRows(const AttentionArgs &a, const Share &share, const Tile &t, Stages<D> &ring, u32 queries, float *kept, int group) {
  using W = WideTile<D>;
  constexpr int V = W::columns, N = W::runs;
  const int column = D > V ? V * group : 0, skip = D > V ? 0 : groupRows * group; // the group's columns and rows
  const int thread = tidX() % 128, warp = thread / 32, lane = tidX() % 32, g = lane / 4, two = lane % 4 * 2;
  const int rows = t.n * share.n;
  const auto tokenOf = [&](int row) ALWAYS { return t.token + row / share.n; };
  const auto headOf = [&](int row) ALWAYS { return share.head + row % share.n; };

  const Range all = rangeOf<D>(a, t.position, t.n);
  Range visible; // to the group
  int fullFrom, fullTo; // positions that all rows of the warp see
  {
    const int low = skip, high = minOf(low + groupRows, rows);
    visible = rangeOf<D>(a, t.position + low / share.n, low < high ? (high - 1) / share.n - low / share.n + 1 : 0);
    const int from = low + 16 * warp, to = minOf(from + 15, rows - 1);
    fullFrom = a.window > 0 ? maxOf(0, t.position + to / share.n - a.window + 1) : 0, fullTo = t.position + from / share.n;
    if (from + 15 >= rows) fullTo = -1;
  }
  int step = all.first;
  // Skip steps that only the other group sees.
  for (; step < visible.first || (visible.last < visible.first && step <= all.last); step++) {
    ring.await();
    ring.leave();
    ring.next();
  }
  if (step > all.last) return; // the group has no rows

  Seen seen[2];
  float top[2], sum[2], partTop[2], partSum[2]; // of all segments so far, and of this segment
  UNROLL for (int r = 0; r < 2; r++) {
    const int row = skip + 16 * warp + g + 8 * r, at = t.position + row / share.n;
    const bool there = row < rows;
    seen[r] = there ? Seen{a.window > 0 ? maxOf(0, at - a.window + 1) : 0, at} : Seen{0, -1};
    top[r] = there && a.sinks ? a.sinks[headOf(row)] * log2e : -infinity, sum[r] = there && a.sinks ? 1 : 0;
    partTop[r] = -infinity, partSum[r] = 0;
  }
  // Groups with the same rows share the queries: so many threads load and read them.
  constexpr int readers = D > V ? 256 : 128;
  const auto syncReaders = [&]() ALWAYS { syncSome<readers>(D > V ? 3 : 3 + group); };
  {
    constexpr int some = 4; // pieces of 8 numbers that a thread loads at a time
    const int row = thread % groupRows, from = (D > V ? 2 * group : 0) + thread / groupRows;
    const bool there = skip + row < rows;
    if (D > V) syncReaders(); // the other group has read the queries of the tile before
    const float4 *q = reinterpret_cast<const float4 *>(a.q + (there ? s64(tokenOf(skip + row)) * a.stride + headOf(skip + row) * D : 0));
    _Pragma("unroll 1") for (int c = from; c < D / 8; c += some * (readers / groupRows)) {
      float4 v[some][2];
      UNROLL for (int i = 0; i < some; i++) {
        UNROLL for (int h = 0; h < 2; h++) v[i][h] = q[2 * (c + i * (readers / groupRows)) + h];
      }
      UNROLL for (int i = 0; i < some; i++) {
        const uint4 halves{halvesOf(v[i][0].x, v[i][0].y), halvesOf(v[i][0].z, v[i][0].w), halvesOf(v[i][1].x, v[i][1].y), halvesOf(v[i][1].z, v[i][1].w)};
        storeChunk(queries + ((c + i * (readers / groupRows)) * groupRows + row) * 16, there ? halves : uint4{});
      }
    }
    showCopies();
    syncReaders();
  }
  float part[V / 2]; // sums of a segment, in the order of a product's accumulators
  UNROLL for (int c = 0; c < V / 2; c++) part[c] = 0;
  kept += thread;
  UNROLL for (int c = 0; c < V / 2; c++) kept[128 * c] = 0;
  const float by = a.softcap > 0 ? 1.0f : a.scale * log2e;

  float x[16 * N], value[V / 2], f[N][2], h[N][2];
  u32 weight[N][2][4];
  bool same[N]; // all factors f of the warp are 1, or the sums are 0
  const u64 queryPieces = piecesOfRows(queries, groupRows * 16);
  const auto multiplyKeys = [&](u32 at) ALWAYS {
    const u64 keys = piecesOfRows(u32(uniform(int(at))), W::chunkBytes);
    beginProducts();
    UNROLL for (int k = 0; k < D / 16; k++) multiplyPieces<W::tokens>(x, later(queryPieces, 2 * groupRows * 16 * k), later(keys, 2 * W::chunkBytes * k), k > 0);
    endProducts();
  };
  const auto multiplyValues = [&](u32 at, int u) ALWAYS {
    const u64 values = columnsOfTiles(u32(uniform(int(at))) + column / 64 * W::panelBytes + u * (runTokens * 128), W::panelBytes);
    beginProducts();
    multiplyColumns<V>(value, uint4{weight[u][0][0], weight[u][0][1], weight[u][0][2], weight[u][0][3]}, values, false);
    multiplyColumns<V>(value, uint4{weight[u][1][0], weight[u][1][1], weight[u][1][2], weight[u][1][3]}, later(values, 2048), true);
    endProducts();
  };
  // weigh computes the weights of run u from the products with its keys, and the factors of the
  // segment's sums and of those of the run.
  const auto weigh = [&](int position, int u) ALWAYS {
    float(&y)[4][4] = reinterpret_cast<float(&)[4][4]>(x[16 * u]);
    bool other = false;
    UNROLL for (int r = 0; r < 2; r++) {
      float top = maxOf(y[0][2 * r], y[0][2 * r + 1]);
      UNROLL for (int n = 1; n < 4; n++) top = maxOf(top, maxOf(y[n][2 * r], y[n][2 * r + 1]));
      top = maxOf(top, shuffleXor(top, 1));
      top = maxOf(top, shuffleXor(top, 2));
      const bool some = seen[r].last >= position && seen[r].first < position + runTokens;
      top = some ? topOf(top, by) : 0.0f;
      UNROLL for (int n = 0; n < 4; n++) weight[u][n / 2][n % 2 * 2 + r] = halvesOf(weightOf(y[n][2 * r], by, top), weightOf(y[n][2 * r + 1], by, top));
      const float most = some ? maxOf(partTop[r], top) : partTop[r];
      f[u][r] = some ? exp2Of(partTop[r] - most) : 1.0f, h[u][r] = some ? exp2Of(top - most) : 0.0f;
      partTop[r] = most;
      other |= f[u][r] != 1;
    }
    same[u] = ballot(other) == 0 || position % segmentTokens == 0;
  };
  // sumUp joins the sums of the weights of run u to the segment's.
  const auto sumUp = [&](int u) ALWAYS {
    float runSum[4] = {};
    UNROLL for (int m = 0; m < 2; m++) addProducts(runSum, weight[u][m], halfOnes, halfOnes);
    UNROLL for (int r = 0; r < 2; r++) partSum[r] = fma(runSum[2 * r], h[u][r], partSum[r] * f[u][r]);
  };
  // scale multiplies the segment's sums by their factors before run u, and add joins those of the run.
  const auto scale = [&](int u) ALWAYS {
    if (same[u]) return;
    UNROLL for (int c = 0; c < V / 2; c++) part[c] *= f[u][c / 2 % 2];
  };
  const auto add = [&](int u) ALWAYS {
    hold(value);
    UNROLL for (int c = 0; c < V / 2; c++) part[c] = fma(value[c], h[u][c / 2 % 2], part[c]);
  };

  ring.await();
  showCopies();
  multiplyKeys(ring.keys());
  Stages<D> now = ring;
  const auto multiplyNext = [&]() ALWAYS {
    ring.next();
    const bool more = step < visible.last;
    if (more) ring.await();
    showCopies();
    multiplyKeys(more ? ring.keys() : now.keys()); // after the last step the result is unused
  };
  _Pragma("unroll 1") for (; step <= visible.last; step++) {
    const int position = step * W::tokens;
    const bool more = step < visible.last;
    awaitProducts<0>();
    hold(x);
    if (position < fullFrom || position + W::tokens - 1 > fullTo) {
      UNROLL for (int r = 0; r < 2; r++) {
        const int from = seen[r].first - position - two, to = seen[r].last - position - two;
        UNROLL for (int n = 0; n < 4 * N; n++) {
          UNROLL for (int i = 0; i < 2; i++) {
            if (8 * n + i < from || 8 * n + i > to) x[4 * n + 2 * r + i] = -infinity;
          }
        }
      }
    }
    if (a.softcap > 0) capProducts(reinterpret_cast<float(&)[4 * N][4]>(x), a);
    now = ring;
    UNROLL for (int u = 0; u < N; u++) weigh(position + u * runTokens, u);
    UNROLL for (int u = 0; u < N; u++) {
      if (u > 0) scale(u); // before the products, which need the registers of those before
      multiplyValues(now.values(), u);
      if (u == 0) {
        UNROLL for (int i = 0; i < N; i++) sumUp(i);
        scale(0);
      }
      if (u == N - 1) {
        multiplyNext();
        awaitProducts<1>();
        if (more) now.leave();
      } else {
        awaitProducts<0>();
      }
      add(u);
    }
    if (more && (position + W::tokens) % segmentTokens != 0) continue; // the segment continues
    const int begin = position / segmentTokens * segmentTokens;
    float mine[2], next[2]; // factors
    UNROLL for (int r = 0; r < 2; r++) {
      const bool some = seen[r].some(begin, segmentTokens);
      const float most = some ? maxOf(top[r], partTop[r]) : top[r];
      mine[r] = some ? exp2Of(top[r] - most) : 1.0f, next[r] = some ? exp2Of(partTop[r] - most) : 0.0f;
      top[r] = most;
      sum[r] = fma(partSum[r], next[r], sum[r] * mine[r]);
      partTop[r] = -infinity, partSum[r] = 0;
    }
    UNROLL for (int c = 0; c < V / 2; c++) {
      kept[128 * c] = fma(part[c], next[c / 2 % 2], kept[128 * c] * mine[c / 2 % 2]);
      part[c] = 0;
    }
  }
  awaitProducts<0>();
  hold(x);
  now.leave();
  // Skip steps that only the other group sees.
  for (; step <= all.last; step++) {
    ring.await();
    ring.leave();
    ring.next();
  }

  UNROLL for (int c = 0; c < V / 2; c++) part[c] = divide(kept[128 * c], sum[c / 2 % 2]);
  kept -= thread;
  const auto syncGroup = [&]() ALWAYS { syncSome<128>(1 + group); };
  syncGroup();
  // Pieces of 16 bytes change places within 128 bytes, so that rows use different banks.
  UNROLL for (int n = 0; n < V / 8; n++) {
    UNROLL for (int r = 0; r < 2; r++) {
      const int row = 16 * warp + g + 8 * r, piece = (2 * n + two / 4) ^ g;
      *reinterpret_cast<float2 *>(kept + row * V + 4 * piece + two % 4) = float2{part[4 * n + 2 * r], part[4 * n + 2 * r + 1]};
    }
  }
  syncGroup();
  constexpr int lanes = V / 4, apart = 128 / lanes, some = 4; // lanes of a row; rows from one to the thread's next; rows at a time
  const int at = thread % lanes * 4, cols = a.heads * D, end = minOf(groupRows, rows - skip);
  _Pragma("unroll 1") for (int first = thread / lanes; first < end; first += some * apart) {
    UNROLL for (int j = 0; j < some; j++) {
      const int i = first + j * apart, token = tokenOf(skip + i), head = headOf(skip + i);
      if (i >= end) continue;
      storeFour(a.out, token, head * D + column + at, *reinterpret_cast<const float4 *>(kept + i * V + 4 * (at / 4 ^ i % 8)));
      if ((head + 1) * D < cols || column + V < D) continue;
      for (int c = cols + at; c < a.out.stride; c += V) storeFour(a.out, token, c, float4{}); // the padding
    }
  }
  syncGroup(); // all threads have read kept
}

template <int D> INLINE void attendWide(const AttentionArgs &a) {
  using W = WideTile<D>;
  extern __shared__ u8 raw[];
  alignas(8) __shared__ u64 barriers[2 * W::stages];
  u8 *shared = raw + (-sharedAt(raw) & 1023);
  u8 *queries = shared + W::stages * 2 * W::keyBytes;
  float *kept = reinterpret_cast<float *>(queries + W::rows / groupRows * W::queryBytes);
  Stages<D> ring{sharedAt(shared), sharedAt(barriers), sharedAt(barriers) + 8 * W::stages};
  if (tidX() == 0) {
    for (int i = 0; i < W::stages; i++) makeBarrier(ring.there + 8 * i, 32), makeBarrier(ring.free + 8 * i, 8);
    showBarriers();
  }
  syncBlock();
  const int group = uniform(tidX() / 128) - 1;
  waitForPrevious();
  allowNext();
  Jobs jobs(a, W::rows);
  Share share;
  Tile t;
  if (group < 0) {
    const int warp = uniform(tidX() / 32);
    fewerRegisters<40>();
    while (jobs.next(share, t)) bring<D>(a, share, t, ring, warp);
    return;
  }
  moreRegisters<232>();
  kept += group * (W::keptBytes / 4);
  while (jobs.next(share, t)) attendRows<D>(a, share, t, ring, sharedAt(queries) + (W::rows > groupRows ? group * W::queryBytes : 0), kept, group);
}

// grid (blocks, at most one for each multiprocessor and tile), 384 threads, shared memory of
// WideTile::bytes; pages hold whole runs.
// cost: arithmetic. Softmax weights and sums take as long as the matrix units do.
#define ATTENTION_WIDE(name, dim) \
  extern "C" __global__ void __launch_bounds__(wideTileThreads, 1) name(const AttentionArgs a) { attendWide<dim>(a); }
