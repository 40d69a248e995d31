// Attention in decoding: every sequence of the step has one token. One launch does what
// turn and attention do, to the bit.
//
// The new token alone is seen by nobody else, so all that a block reads of the past was
// written by steps before: it is asked for while the kernel before still runs, and
// waited for together with the new token's query.
#pragma once
#include "eight.cuh"

// The two say the same of the heads, the pool and the table. qOut is not written, and
// partial is [T][groups][maxSegments][8][headDim+2].
struct DecodeArgs {
  TurnArgs turn;
  AttentionArgs attention;
};

template <class C, int D> struct DecodeShared {
  Eight<D> eight;
  alignas(16) float slot[runs][Eight<D>::dim > 96 ? Eight<D>::dim : 96]; // heads on their way; of segments done apart, their factors
  Copy<C> key, value;                                                    // the new token's
  int last;
};

template <class C, int D> INLINE void decode(const DecodeArgs &args, DecodeShared<C, D> &s) {
  const TurnArgs &t = args.turn;
  const AttentionArgs &a = args.attention;
  using E = Eight<D>;
  constexpr int laneValues = E::dim / 32;
  const int token = blockZ(), group = blockY(), warp = tidX() / 32, lane = tidX() % 32, dim = D ? D : a.dim, steps = (dim + 15) / 16;
  const int share = a.heads / a.kvHeads, chunks = (share + blockHeads - 1) / blockHeads;
  const int kvHead = group / chunks, skipped = group % chunks * blockHeads;
  const int head = kvHead * share + skipped, n = minOf(blockHeads, share - skipped);

  const Place place = a.table.places[token];
  const int last = place.position, first = a.window > 0 ? maxOf(0, last - a.window + 1) : 0;
  const int segments = last / segmentTokens - first / segmentTokens + 1;
  if (last < 0 || blockX() >= segments) {
    waitForPrevious();
    allowNext();
    return;
  }
  const bool newest = blockX() == segments - 1; // of the segments: the new token's
  const int segment = first / segmentTokens + blockX(), begin = segment * segmentTokens;
  const Source source{a.pool, a.table, place.shift, kvHead};
  const u32 keys = sharedBands(), values = keys + E::bytes;
  if constexpr (D) {
    const Mine mine = mineOf<E::band>(source, begin, first, last);
    bring<C, D, E::band, blockThreads>(keys, source, mine, true, begin, first, last + 1, last);
    bring<C, D, E::band, blockThreads>(values, source, mine, false, begin, first, last + 1, last);
    endCopies();
  }
  for (int i = n * 16 * steps + tidX(); i < eightRows * 16 * steps; i += blockThreads) s.eight.q[i / (16 * steps)][i % (16 * steps)] = 0;

  // Heads to turn, a warp for each: the block's queries, and of the new token's segment
  // the key and the value.
  const int tasks = newest ? n + 2 : n;
  Slot slot{};
  if (newest) slot = slotOf(a.pool, a.table, place.shift, last);
  float w[laneValues] = {};
  const auto loadNorm = [&](int task) ALWAYS {
    const float *norm = task < n ? t.qNorm : task == n ? t.kNorm : nullptr;
    if (norm) loadHead(w, norm, dim, lane);
    return norm != nullptr;
  };
  bool norm = warp < tasks && loadNorm(warp);
  waitForPrevious();
  allowNext();

  _Pragma("unroll 1") for (int task = warp; task < tasks; task += runs) {
    if (task > warp) norm = loadNorm(task);
    const bool query = task < n, isKey = task == n;
    const float *x = query ? a.q + s64(token) * a.stride + (head + task) * dim
                           : isKey ? t.k + s64(token) * t.kStride + kvHead * dim : t.v + s64(token) * t.vStride + kvHead * dim;
    float v[laneValues];
    loadHead(v, x, dim, lane);
    const Step step = query ? queryStep(t, token) : keyStep(t, token);
    const bool turned = (query || isKey) && step.angles;
    float2 by[laneValues];
    if (turned) loadAngles(by, step, lane);
    if (norm) normalize(v, w, step.eps, dim);
    if (turned) turn(v, s.slot[warp], by, step, lane);
    if (query) {
      UNROLL for (int j = 0; j < laneValues; j++) {
        if (32 * j + lane < 16 * steps) s.eight.q[task][32 * j + lane] = floatToHalf(v[j]);
      }
      continue;
    }
    Copy<C> &copy = isKey ? s.key : s.value;
    if (storeHead(a.pool, slot, isKey, kvHead, dim, v, lane, skipped == 0, &copy)) {
      if (lane == 0 && skipped == 0) __atomic_fetch_min(t.overflow + token, t.layer, __ATOMIC_RELAXED);
    }
    syncWarp();
    if constexpr (D) putCopy<E::band>(isKey ? keys : values, last - begin, copy, D / 8, D);
  }
  waitCopies<0>();
  syncBlock();

  float value[E::tiles][4] = {}, sum[4] = {}, top[2];
  Seen seen[2];
  UNROLL for (int h = 0; h < 2; h++) seen[h] = lane % 4 * 2 + h < n ? Seen{first, last} : Seen{0, -1};
  if constexpr (D) {
    const int lo = maxOf(first - begin, 0) / 16, hi = minOf(last - begin, segmentTokens - 1) / 16 + 1; // steps that are seen
    Exponents x{};
    UNROLL for (int m = 0; m < 2; m++) {
      if (tileAt<D>(m) >= 16 * lo && tileAt<D>(m) < 16 * hi) score<D>(x.of[m], s.eight, keys, m, steps);
    }
    weigh<D>(top, s.eight, x, a, segment, seen);
    addValues<D>(value, sum, s.eight, values, 0, lo, hi, steps);
  } else {
    const Reach<C> reach{first, last, newest ? &s.key : nullptr, &s.value};
    attendInTurn<C>(value, sum, top, s.eight, a, source, segment, reach, seen);
  }

  const s64 at = s64(token) * a.kvHeads * chunks + group;
  if (segments == 1) {
    eachValue<D>(steps, [&](int h, int d, int m, int i) ALWAYS {
      if (h >= n || d >= dim) return;
      Part all{-infinity, 0, 0};
      if (a.sinks) all = Part{a.sinks[head + h] * log2e, 1, 0};
      join(all, Part{top[i % 2], sum[i % 2], value[m][i]});
      s.eight.value[h][d] = all.value;
      if (d == 0) s.eight.sum[h] = all.sum;
    });
  } else {
    float *partial = a.partial + at * a.maxSegments * blockHeads * (dim + 2);
    eachValue<D>(steps, [&](int h, int d, int m, int i) ALWAYS {
      if (h >= n || d >= dim) return;
      float *p = partial + (s64(blockX()) * blockHeads + h) * (dim + 2);
      if (d == 0) p[0] = top[i % 2], p[1] = sum[i % 2];
      p[2 + d] = value[m][i];
    });
    if (!drawsLast(a.tickets + at, segments, s.last)) return;
    constexpr int count = blockHeads * E::dim / blockThreads;
    float result[count];
    joinApart<blockHeads>(result, partial, segments, a.sinks ? a.sinks + head : nullptr, n, dim, s.slot);
    UNROLL for (int k = 0; k < count; k++) {
      const int e = tidX() + k * blockThreads;
      if (e < n * dim) s.eight.value[e / dim][e % dim] = result[k];
      if (e < n) s.eight.sum[e] = 1;
    }
  }
  syncBlock();
  storeEight(s.eight, a.out, n, dim, [&](int) ALWAYS { return token; }, [&](int row) ALWAYS { return head + row; });
}

// grid (the most segments that a token sees, kvHeads*ceil(heads/kvHeads/8), T), 256
// threads, Eight::bytes of shared memory, twice where the head's length is known.
// cost: latency. After the wait, one load (query, key and value of the new token), four
// barriers, and chains of a head's length and of a segment's, a step each 16; of several
// segments two loads more.
#define DECODE(name, cache, dim)                                                          \
  extern "C" __global__ void __launch_bounds__(blockThreads) name(const DecodeArgs a) {   \
    __shared__ DecodeShared<cache, dim> s;                                                \
    decode<cache, dim>(a, s);                                                             \
  }
