// Attention in decoding to a KV cache of float32, where each sequence of the step has one token.
// One launch computes what turn and attention compute, to the bit.
//
// No other token sees the new one, so everything else that a block reads was written by earlier
// steps. The block loads it while the previous kernel still runs, and waits for it together with
// the new token's query.
#pragma once
#include "floats.cuh"
#include "head.cuh"

// turn and attention have the same heads, pool and table. qOut is not written, and partial is
// [T][groups][maxSegments][H][headDim+2] for the H heads of a kernel. There are no prefixes: prefix
// and folded are 0.
struct DecodeArgs {
  TurnArgs turn;
  AttentionArgs attention;
  const s32 *prefix;
  s32 folded;
};

template <int D, int H> struct DecodeShared {
  static constexpr int dim = D ? D : maxHeadDim;
  alignas(16) float q[H * dim];                                 // [heads][headDim] queries, scaled
  // A warp's head during rotation, then its weights [32][heads], then its values [heads][headDim];
  // later the factors of segments.
  alignas(16) float slot[runs][H * dim > 128 ? H * dim : 128];
  Copy<CacheF32> key, value;                                    // the new token's
  const u8 *row[runs][runTokens];                               // the value of each position
  alignas(16) float top[H][runs];                               // largest score of a run
  alignas(16) float sum[H][runs];                               // sum of its weights
  int last;
};

// A Past is what a warp reads of earlier tokens: the keys and values of its run. If the head length
// is not known at compile time, the warp reads them when it needs them.
template <int D> struct Past {
  // A warp reads the values of longer heads after it has used the keys, for lack of registers.
  static constexpr bool values = D == 64;
  uint4 key[D / 4];
  ValueRow<D> value[runTokens];
};
template <> struct Past<0> {};

// pastKeys loads the key of a lane.
template <int D> INLINE void pastKeys(Past<D> &p, const Key &key) {
  UNROLL for (int i = 0; i < D / 4; i++) p.key[i] = loadOnce(reinterpret_cast<const uint4 *>(key.at + s64(i) * key.apart));
}

// pastValues loads the values of positions lo to old-1 of a run. The others are copies of these:
// their weights are 0, which changes no sum of finite numbers.
template <int D, class S> INLINE void pastValues(Past<D> &p, const S &s, int lo, int old) {
  const int warp = tidX() / 32, lane = tidX() % 32;
  UNROLL for (int i = 0; i < runTokens; i++) {
    const u8 *row = s.row[warp][minOf(maxOf(i, lo), old - 1)] + lane * (D / 8);
    ValueRow<D> &r = p.value[i];
    if constexpr (D == 128) {
      const uint4 v = loadOnce(reinterpret_cast<const uint4 *>(row));
      r.number[0] = asFloat(v.x), r.number[1] = asFloat(v.y), r.number[2] = asFloat(v.z), r.number[3] = asFloat(v.w);
    } else {
      const uint2 v = loadOnce(reinterpret_cast<const uint2 *>(row));
      r.number[0] = asFloat(v.x), r.number[1] = asFloat(v.y);
    }
  }
}

// addValues adds the weighted values of a run's past positions. weight is [32][H].
template <int D, int H, int N> INLINE void addValues(float (&value)[H][N], const Past<D> &p, const float *weight) {
  UNROLL for (int g = 0; g < runTokens * H / 4; g++) {
    const float4 v = *reinterpret_cast<const float4 *>(weight + 4 * g);
    const float four[4] = {v.x, v.y, v.z, v.w};
    UNROLL for (int c = 0; c < 4; c++) {
      const int i = (4 * g + c) / H, h = (4 * g + c) % H;
      UNROLL for (int k = 0; k < N; k++) value[h][k] = fma(four[c], p.value[i].number[k], value[h][k]);
    }
  }
}

template <int D, int H> INLINE void decodeFloats(const DecodeArgs &args, DecodeShared<D, H> &s) {
  const TurnArgs &t = args.turn;
  const AttentionArgs &a = args.attention;
  static_assert(H + 2 <= runs); // a warp prepares at most one head
  constexpr int maxDim = D ? D : maxHeadDim, laneValues = maxDim / 32;
  using Row = ValueRow<D>;
  const int token = blockZ(), group = blockY(), warp = tidX() / 32, lane = tidX() % 32, dim = D ? D : a.dim;
  const int share = a.heads / a.kvHeads, chunks = (share + H - 1) / H;
  const int kvHead = group / chunks, skipped = group % chunks * H;
  const int head = kvHead * share + skipped, n = minOf(H, share - skipped);

  const Place place = a.table.places[token];
  const int last = place.position, first = a.window > 0 ? maxOf(0, last - a.window + 1) : 0;
  const int segments = last / segmentTokens - first / segmentTokens + 1;
  if (last < 0 || blockX() >= segments) {
    waitForPrevious();
    allowNext();
    return;
  }
  const bool newest = blockX() == segments - 1; // whether the block has the new token
  const int begin = (first / segmentTokens + blockX()) * segmentTokens + warp * runTokens;
  // Positions lo to hi-1 of this run are visible, of which lo to old-1 are past. The others are not
  // read: their memory is undefined.
  const int lo = maxOf(first - begin, 0), hi = minOf(last + 1 - begin, runTokens), old = minOf(last - begin, runTokens);
  const bool any = lo < hi, past = lo < old;

  Past<D> before{};
  Key key{};
  if (past) {
    const Slot slot = slotOf(a.pool, a.table, place.shift, begin + minOf(maxOf(lane, lo), old - 1));
    key = keyIn(a.pool, slot, kvHead);
    s.row[warp][lane] = a.pool.base + valueAt<CacheF32>(a.pool, slot, kvHead);
    if constexpr (D) {
      pastKeys(before, key);
      syncWarp();
      if constexpr (Past<D>::values) pastValues(before, s, lo, old);
    }
  }

  // Heads to prepare, one on each warp: the block's queries, and in the new token's segment its key
  // and its value.
  const int tasks = newest ? n + 2 : n;
  Slot slot{};
  if (warp >= n && warp < tasks) slot = slotOf(a.pool, a.table, place.shift, last);
  const int task = warp;
  const bool query = task < n, isKey = task == n;
  const float *norm = query ? t.qNorm : isKey && newest ? t.kNorm : nullptr;
  float w[laneValues] = {};
  if (norm) loadHead(w, norm, dim, lane);
  waitForPrevious();
  allowNext();

  if (task < tasks) {
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
      const float scale = a.softcap > 0 ? 1.0f : a.scale * log2e;
      UNROLL for (int j = 0; j < laneValues; j++) {
        if (32 * j + lane < dim) s.q[task * dim + 32 * j + lane] = v[j] * scale;
      }
    } else if (storeHead(a.pool, slot, isKey, kvHead, dim, v, lane, skipped == 0, isKey ? &s.key : &s.value)) {
      if (lane == 0 && skipped == 0) __atomic_fetch_min(t.overflow + token, t.layer, __ATOMIC_RELAXED);
    }
  }
  syncBlock();

  // The new token's lane reads its key from shared memory, where a warp has just written it.
  float score[H];
  const bool isNew = begin + lane == last;
  if (any) {
    if constexpr (D) {
      if (isNew) {
        UNROLL for (int i = 0; i < D / 4; i++) before.key[i] = *reinterpret_cast<const uint4 *>(s.key.numbers + 16 * i);
      }
      UNROLL for (int h = 0; h < H; h++) score[h] = 0;
      addChunks<D / 4, H>(score, s.q, dim, before.key, D / 4);
      if constexpr (!Past<D>::values) {
        if (past) pastValues(before, s, lo, old);
      }
    } else {
      if (isNew) {
        s.row[warp][lane] = s.value.numbers;
      }
      // Lanes that see nothing may read any key, but need a valid address.
      if (isNew || !past) key = Key{s.key.numbers, chunkLength<CacheF32>(dim) * 4};
      keyScores<D, H>(score, s.q, key, dim);
    }
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

  // Runs that are not visible add 0, by the same code as the others.
  float *slotValues = s.slot[warp];
  float value[H][Row::count] = {};
  if (any) {
    float newest[H];
    UNROLL for (int h = 0; h < H; h++) {
      const float top = largestOf(s.top[h]);
      const float weight = lane < lo || lane >= hi ? 0.0f : exp2Of(score[h] - top);
      const float sum = warpSum(weight);
      slotValues[lane * H + h] = D && isNew ? 0.0f : weight;
      newest[h] = shuffleFrom(weight, old & 31);
      if (lane == 0) s.sum[h][warp] = sum;
    }
    syncWarp();
    if constexpr (D) {
      if (past) addValues(value, before, slotValues);
      if (old < hi) {
        Row row;
        loadRow(row, s.value.numbers, dim, lane);
        UNROLL for (int k = 0; k < Row::count; k++) {
          const float x = row.number[k];
          UNROLL for (int h = 0; h < H; h++) value[h][k] = fma(newest[h], x, value[h][k]);
        }
      }
    } else {
      _Pragma("unroll 1") for (int i = lo; i < hi; i++) {
        Row row;
        loadRow(row, s.row[warp][i], dim, lane);
        UNROLL for (int k = 0; k < Row::count; k++) {
          UNROLL for (int h = 0; h < H; h++) value[h][k] = fma(slotValues[i * H + h], row.number[k], value[h][k]);
        }
      }
    }
    syncWarp(); // all lanes have read the weights: values overwrite them
  } else if (lane < H) {
    s.sum[lane][warp] = 0;
  }
  UNROLL for (int h = 0; h < H; h++) {
    UNROLL for (int k = 0; k < Row::count; k++) {
      const int at = D ? lane * Row::count + k : 32 * k + lane;
      if (D || at < dim) slotValues[h * dim + at] = value[h][k];
    }
  }
  syncBlock();

  // Element k of a thread is element tidX()+256k of the heads.
  constexpr int count = (H * maxDim + blockThreads - 1) / blockThreads;
  float result[count];
  const s64 at = s64(token) * a.kvHeads * chunks + group;
  float *partial = a.partial + at * a.maxSegments * H * (dim + 2);
  UNROLL for (int k = 0; k < count; k++) {
    const int e = tidX() + k * blockThreads, h = e / dim;
    result[k] = 0;
    if (h >= n) continue;
    Part part{largestOf(s.top[h]), sumOf(s.sum[h]), 0};
    UNROLL for (int r = 0; r < runs; r++) part.value = part.value + s.slot[r][e];
    if (segments == 1) {
      Part all{-infinity, 0, 0};
      if (a.sinks) all = Part{a.sinks[head + h] * log2e, 1, 0};
      join(all, part);
      result[k] = divide(all.value, all.sum);
      continue;
    }
    float *p = partial + (s64(blockX()) * H + h) * (dim + 2);
    if (e == h * dim) p[0] = part.top, p[1] = part.sum;
    p[2 + e - h * dim] = part.value;
  }
  if (segments > 1) {
    if (!drawsLast(a.tickets + at, segments, s.last)) return;
    joinApart<H>(result, partial, segments, a.sinks ? a.sinks + head : nullptr, n, dim, s.slot);
  }
  UNROLL for (int k = 0; k < count; k++) {
    const int e = tidX() + k * blockThreads;
    if (e >= n * dim) break;
    if (D || dim % 32 == 0) storeBlock(a.out, token, (head * dim + e) / 32, lane, result[k]);
    else a.out.f32[s64(token) * a.out.stride + head * dim + e] = result[k];
  }
}

// grid (the most segments that a token sees, kvHeads*ceil(heads/kvHeads/H), T), 256 threads, no
// dynamic shared memory. A block of fewer heads finishes sooner, but more blocks read each key.
// cost: latency. After the wait, one load (query, key and value of the new token), four barriers,
// and chains as long as a head and as a run; with several segments two more loads. A thread holds a
// key and its share of 32 values in registers: twice headDim elements of the KV cache.
#define DECODE_FLOATS(name, dim, heads)                                                   \
  extern "C" __global__ void __launch_bounds__(blockThreads, dim ? 1 : 2) name(const DecodeArgs a) { \
    __shared__ DecodeShared<dim, heads> s;                                                \
    decodeFloats<dim, heads>(a, s);                                                       \
  }
