// Attention of tokens whose keys and values are in KV cache pages of float32.
#pragma once
#include "floats.cuh"

// A Task is the work of a block: n query heads of one token that share a key/value head.
struct Task {
  int token;
  int head, n; // the first query head
  int kvHead;
  int shift;       // see Place
  int first, last; // visible positions
};

// slotValues is the size of the buffer that a warp uses to pass the values of its heads to the
// other warps.
constexpr int slotValues = 1024;

struct Shared {
  alignas(16) float q[blockHeads * maxHeadDim]; // [heads][headDim] queries, scaled; later results
  alignas(16) float slot[runs][slotValues];     // a warp's weights [32][heads], then its values
                                                // [heads][headDim]; later the factors of segments
  const u8 *row[runs][runTokens];               // the value of each position
  alignas(16) float top[blockHeads][runs];      // largest score of a run
  alignas(16) float sum[blockHeads][runs];      // sum of its weights
  float segmentTop[blockHeads];
  int last;
};

// --- Segments

// Elements says which elements of H heads a thread has. If H heads of up to 256 elements do not fit
// in a warp's slot, they take two passes.
template <int D, int H> struct Elements {
  static constexpr int dim = D ? D : maxHeadDim;
  static constexpr int passes = H * dim > slotValues ? 2 : 1;
  static constexpr int heads = H / passes; // of a pass
  static constexpr int each = (heads * dim + blockThreads - 1) / blockThreads;
  static constexpr int count = passes * each;
};

// An Element is one of a thread's elements: its head in the block and its index in the head.
struct Element {
  int head, at;
};
template <int D, int H> INLINE Element elementOf(int i, int dim) {
  using E = Elements<D, H>;
  const int e = tidX() + i % E::each * blockThreads;
  const int head = e / dim;
  // No thread has elements beyond the heads of the pass.
  return Element{head < E::heads ? i / E::each * E::heads + head : blockHeads, e - head * dim};
}

// segmentParts sets part to this thread's elements of a segment. All threads of the block call it;
// the queries are in s.q.
template <int D, int H>
INLINE void segmentParts(const AttentionArgs &a, const Task &t, Shared &s, int segment, int dim, Part (&part)[Elements<D, H>::count]) {
  using E = Elements<D, H>;
  using Row = ValueRow<D>;
  const int warp = tidX() / 32, lane = tidX() % 32;
  const int begin = segment * segmentTokens + warp * runTokens;
  // Positions lo to hi-1 of this run are visible. The others are not read: their memory is
  // undefined.
  const int lo = maxOf(t.first - begin, 0), hi = minOf(t.last + 1 - begin, runTokens);
  const bool any = lo < hi;
  const int firstRun = maxOf(t.first - segment * segmentTokens, 0) / runTokens;
  const int lastRun = minOf(t.last - segment * segmentTokens, segmentTokens - 1) / runTokens;
  float *slot = s.slot[warp];

  Row next[Row::depth];
  const auto load = [&](int from) {
    UNROLL for (int j = 0; j < Row::depth; j++) {
      const int i = minOf(from + j, hi - 1);
      loadRow(next[j], s.row[warp][i], dim, lane);
    }
  };

  // Before the first barrier slow threads may still read sum, segmentTop and slot of the previous
  // segment, so no thread writes them.
  float score[H];
  if (any) {
    const Slot place = slotOf(a.pool, a.table, t.shift, begin + minOf(maxOf(lane, lo), hi - 1));
    s.row[warp][lane] = a.pool.base + valueAt<CacheF32>(a.pool, place, t.kvHead);
    syncWarp();
    if constexpr (D) load(lo); // in flight while scores are computed
    keyScores<D, H>(score, s.q, keyIn(a.pool, place, t.kvHead), dim);
    if (a.softcap > 0) capScores(score, a);
    UNROLL for (int h = 0; h < H; h++) {
      if (lane < lo || lane >= hi) score[h] = -infinity;
      const float top = warpMax(score[h]);
      if (lane == 0) s.top[h][warp] = top;
    }
  } else if (lane < H) {
    s.top[lane][warp] = -infinity;
  }
  syncBlock();

  float value[H][Row::count] = {};
  if (any) {
    UNROLL for (int h = 0; h < H; h++) {
      const float top = largestOf(s.top[h]);
      const float weight = lane < lo || lane >= hi ? 0.0f : exp2Of(score[h] - top);
      const float sum = warpSum(weight);
      slot[lane * H + h] = weight;
      if (lane == 0) s.sum[h][warp] = sum;
      // The end of the segment reads this copy: by then fast threads write s.top of the next
      // segment.
      if (lane == 0 && warp == firstRun) s.segmentTop[h] = top;
    }
    syncWarp();
    _Pragma("unroll 1") for (int i = lo; i < hi; i += Row::depth) {
      if constexpr (!D) load(i);
      Row row[Row::depth];
      UNROLL for (int j = 0; j < Row::depth; j++) row[j] = next[j];
      if (D && i + Row::depth < hi) load(i + Row::depth);
      UNROLL for (int j = 0; j < Row::depth; j++) {
        if (i + j >= hi) break;
        float weight[H];
        UNROLL for (int h = 0; h < H; h++) weight[h] = slot[(i + j) * H + h];
        UNROLL for (int k = 0; k < Row::count; k++) {
          const float x = row[j].number[k];
          UNROLL for (int h = 0; h < H; h++) value[h][k] = fma(weight[h], x, value[h][k]);
        }
      }
    }
    syncWarp(); // all lanes have read the weights: values overwrite them
  } else if (lane < H) {
    s.sum[lane][warp] = 0;
  }

  UNROLL for (int p = 0; p < E::passes; p++) {
    if (p > 0) syncBlock();
    if (any) {
      UNROLL for (int h = 0; h < E::heads; h++) {
        UNROLL for (int k = 0; k < Row::count; k++) {
          const int at = D ? lane * Row::count + k : 32 * k + lane;
          if (D || at < dim) slot[h * dim + at] = value[p * E::heads + h][k];
        }
      }
    }
    syncBlock();
    UNROLL for (int i = p * E::each; i < (p + 1) * E::each; i++) {
      const Element e = elementOf<D, H>(i, dim);
      if (e.head >= blockHeads) continue;
      part[i] = Part{s.segmentTop[e.head], sumOf(s.sum[e.head]), 0};
      UNROLL for (int r = 0; r < runs; r++) {
        if (r >= firstRun && r <= lastRun) part[i].value = part[i].value + s.slot[r][(e.head - p * E::heads) * dim + e.at];
      }
    }
  }
}

// attend computes segments from, from+step, ... of the n that the token sees. If apart is set it
// writes their parts to partial, else the results to s.q.
template <int D, int H>
INLINE void attend(const AttentionArgs &a, const Task &t, Shared &s, int from, int step, int n, bool apart, float *partial) {
  using E = Elements<D, H>;
  const int dim = D ? D : a.dim;
  // Weights are powers of 2: queries are scaled so that scores are exponents. With a softcap,
  // capScores makes the exponents.
  const float by = a.softcap > 0 ? 1.0f : a.scale * log2e;
  const float *q = a.q + s64(t.token) * a.stride + t.head * dim;
  UNROLL for (int i = 0; i < (H * E::dim + blockThreads - 1) / blockThreads; i++) {
    const int e = tidX() + i * blockThreads;
    if (e < H * dim) s.q[e] = e < t.n * dim ? q[e] * by : 0.0f;
  }
  syncBlock();

  Part all[E::count];
  UNROLL for (int k = 0; k < E::count; k++) {
    all[k] = Part{-infinity, 0, 0};
    const Element e = elementOf<D, H>(k, dim);
    if (a.sinks && e.head < t.n) all[k] = Part{a.sinks[t.head + e.head] * log2e, 1, 0};
  }
  _Pragma("unroll 1") for (int i = from; i < n; i += step) {
    Part part[E::count];
    segmentParts<D, H>(a, t, s, t.first / segmentTokens + i, dim, part);
    UNROLL for (int k = 0; k < E::count; k++) {
      const Element e = elementOf<D, H>(k, dim);
      if (e.head >= t.n) continue;
      if (!apart) {
        join(all[k], part[k]);
        continue;
      }
      float *p = partial + (s64(i) * blockHeads + e.head) * (dim + 2);
      if (e.at == 0) p[0] = part[k].top, p[1] = part[k].sum;
      p[2 + e.at] = part[k].value;
    }
  }
  if (apart) return;
  // No thread reads the queries after the last barrier of the segment.
  UNROLL for (int k = 0; k < E::count; k++) {
    const Element e = elementOf<D, H>(k, dim);
    if (e.head < t.n) s.q[e.head * dim + e.at] = divide(all[k].value, all[k].sum);
  }
}

// A block may compute more heads than it has: that costs arithmetic, not memory traffic, and saves
// code.
template <int D>
INLINE void attendHeads(const AttentionArgs &a, const Task &t, Shared &s, int from, int step, int n, bool apart, float *partial) {
  if constexpr (D) {
    if (t.n == 1) return attend<D, 1>(a, t, s, from, step, n, apart, partial);
    if (t.n <= 4) return attend<D, 4>(a, t, s, from, step, n, apart, partial);
  }
  attend<D, 8>(a, t, s, from, step, n, apart, partial);
}

INLINE void attentionOfFloats(const AttentionArgs &a, Shared &s) {
  Task t;
  t.token = blockZ();
  const int group = blockY();
  const Place place = a.table.places[t.token];
  waitForPrevious();
  allowNext();
  if (t.token >= *a.count) return;
  const int share = a.heads / a.kvHeads, chunks = (share + blockHeads - 1) / blockHeads;
  t.kvHead = group / chunks;
  const int skipped = group % chunks * blockHeads;
  t.head = t.kvHead * share + skipped;
  t.n = minOf(blockHeads, share - skipped);
  t.last = place.position;
  t.first = a.window > 0 ? maxOf(0, t.last - a.window + 1) : 0;
  t.shift = place.shift;

  const int n = t.last / segmentTokens - t.first / segmentTokens + 1, grid = gridX();
  const bool apart = a.split && grid > 1 && n > 1 && n <= a.maxSegments;
  const int blocks = apart ? minOf(n, grid) : 1;
  if (blockX() >= blocks) return;
  const s64 at = s64(t.token) * a.kvHeads * chunks + group;
  float *partial = a.partial + at * a.maxSegments * blockHeads * (a.dim + 2);

  if (a.dim == 128) attendHeads<128>(a, t, s, blockX(), blocks, n, apart, partial);
  else if (a.dim == 64) attendHeads<64>(a, t, s, blockX(), blocks, n, apart, partial);
  else attendHeads<0>(a, t, s, blockX(), blocks, n, apart, partial);

  if (apart) {
    if (!drawsLast(a.tickets + at, blocks, s.last)) return;
    float value[blockHeads * maxHeadDim / blockThreads];
    joinApart<blockHeads>(value, partial, n, a.sinks ? a.sinks + t.head : nullptr, t.n, a.dim, s.slot);
    UNROLL for (int k = 0; k < blockHeads * maxHeadDim / blockThreads; k++) {
      if (tidX() + k * blockThreads < t.n * a.dim) s.q[tidX() + k * blockThreads] = value[k];
    }
  }

  syncBlock();
  const int lane = tidX() % 32, col = t.head * a.dim;
  if (a.dim % 32 == 0) {
    for (int b = tidX() / 32; b < t.n * a.dim / 32; b += runs) {
      storeBlock(a.out, t.token, col / 32 + b, lane, s.q[b * 32 + lane]);
    }
  } else {
    for (int e = tidX(); e < t.n * a.dim; e += blockThreads) {
      a.out.f32[s64(t.token) * a.out.stride + col + e] = s.q[e];
    }
  }
}

// grid (split ? segments : 1, groups, T) with groups = kvHeads*ceil(heads/kvHeads/8), 256 threads,
// no dynamic shared memory. If there are fewer blocks than segments, a block computes several.
// cost: with many segments memory: keys and values are read once for up to 8 query heads. With few
// segments latency: dependent loads (page, key, value, and twice the parts of other blocks).
#define ATTENTION_FLOATS(name)                                                              \
  extern "C" __global__ void __launch_bounds__(blockThreads, 2) name(const AttentionArgs a) { \
    __shared__ Shared s;                                                                    \
    attentionOfFloats(a, s);                                                                \
  }
