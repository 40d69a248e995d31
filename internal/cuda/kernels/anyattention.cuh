// Attention in all forms that attention.cuh and decode.cuh lack: values of another length than keys,
// or that are the beginning of keys, long heads, windows that begin at multiples of a chunk, and keys
// and values that another layer has stored. Steps of one token and of many are computed alike.
//
// A context is cut at absolute multiples of 256 positions, a segment, and that into runs of 32, one
// for each warp. Numbers of a cache are float32 times their scale; queries, weights and sums are
// float32:
//
//   score  = a chain of fma over the head in ascending order
//   weight = 2^(exponent-top) with the largest exponent of the segment
//   sum    = by halves over a run, then runs in ascending order
//   values = a chain of fma over a run in ascending order, then runs in ascending order
//
// Segments are joined in ascending order. So the bits of a row depend on its positions alone.
#pragma once
#include "head.cuh"
#include "segment.cuh"

// An AnyPool is a Pool whose values may have another length than its keys, or are not there. Where
// both have one length, everything lies as in a Pool.
struct AnyPool {
  u8 *base;
  s64 apart;
  s32 pageTokens, kvHeads;
  s32 keyDim, valueDim;
};

INLINE Slot slotIn(const AnyPool &p, const Table &t, int shift, int position) {
  const int page = position / p.pageTokens;
  return Slot{t.pages[shift + page] * p.apart, position - page * p.pageTokens};
}

// A Numbers is where numbers of a position's key or value are: runs of together, a run apart bytes
// from the next, and their scales.
struct Numbers {
  u8 *at, *scales;
  int together, apart, scalesApart;
};

template <class C> INLINE Numbers keyOf(const AnyPool &p, const Slot &s, int head) {
  const int e = chunkLength<C>(p.keyDim);
  u8 *page = p.base + s.page, *scales = page + s64(p.kvHeads) * (p.keyDim + p.valueDim) * p.pageTokens * C::bytes;
  return Numbers{page + (s64(head) * p.keyDim * p.pageTokens + s.at * e) * C::bytes,
                 scales + (s64(head) * scalesOf<C>(p.keyDim) * p.pageTokens + s.at) * 2, e, p.pageTokens * e * C::bytes, p.pageTokens * 2};
}
template <class C> INLINE Numbers valueOf(const AnyPool &p, const Slot &s, int head) {
  u8 *page = p.base + s.page, *scales = page + s64(p.kvHeads) * (p.keyDim + p.valueDim) * p.pageTokens * C::bytes;
  const s64 row = s64(head) * p.pageTokens + s.at;
  return Numbers{page + (s64(p.kvHeads) * p.keyDim * p.pageTokens + row * p.valueDim) * C::bytes,
                 scales + (s64(p.kvHeads) * scalesOf<C>(p.keyDim) * p.pageTokens + row * scalesOf<C>(p.valueDim)) * 2, p.valueDim, 0, 2};
}

template <class C> INLINE u8 *placeOf(const Numbers &n, int i) {
  return n.at + s64(i / n.together) * n.apart + i % n.together * C::bytes;
}

INLINE float numberAt(CacheF32, const Numbers &n, int i) { return *reinterpret_cast<const float *>(placeOf<CacheF32>(n, i)); }
INLINE float numberAt(CacheF16, const Numbers &n, int i) { return halfToFloat(*reinterpret_cast<const u16 *>(placeOf<CacheF16>(n, i))); }
// numberOf is what the scale multiplies.
INLINE float numberOf(CacheQ8, u32 code) { return float(s8(code)); }
INLINE float numberOf(CacheF8, u32 code) { return halfToFloat(u16((code & 0x7f) << 7 | (code & 0x80) << 8)); }
template <class C> INLINE float numberAt(C, const Numbers &n, int i) {
  const u16 scale = *reinterpret_cast<const u16 *>(n.scales + s64(scaleOf<C>(i)) * n.scalesApart);
  return numberOf(C{}, *placeOf<C>(n, i)) * halfToFloat(scale);
}

// fourNumbers reads numbers i to i+3, i a multiple of 4, which lie side by side at a multiple of
// their size.
INLINE float4 fourNumbers(CacheF32, const Numbers &n, int i) { return *reinterpret_cast<const float4 *>(placeOf<CacheF32>(n, i)); }
INLINE float4 fourNumbers(CacheF16, const Numbers &n, int i) {
  const uint2 w = *reinterpret_cast<const uint2 *>(placeOf<CacheF16>(n, i));
  return float4{halfToFloat(u16(w.x)), halfToFloat(u16(w.x >> 16)), halfToFloat(u16(w.y)), halfToFloat(u16(w.y >> 16))};
}
template <class C> INLINE float4 fourNumbers(C, const Numbers &n, int i) {
  const u32 w = *reinterpret_cast<const u32 *>(placeOf<C>(n, i));
  const float by = halfToFloat(*reinterpret_cast<const u16 *>(n.scales + s64(scaleOf<C>(i)) * n.scalesApart));
  return float4{numberOf(C{}, w) * by, numberOf(C{}, w >> 8) * by, numberOf(C{}, w >> 16) * by, numberOf(C{}, w >> 24) * by};
}

// --- Storing

struct StoreArgs {
  const float *k, *v; // [T, kStride], [T, vStride]
  s32 kStride, vStride;
  s32 latent; // a key is so many numbers of a head of k, followed by a head of v, and is the value too; 0: k and v are keys and values
  s32 layer;
  AnyPool pool;
  Table table;
  const s32 *sequence; // [T] of a token
  s32 *overflow;       // [S] becomes at most layer where the cache cannot hold a finite number
  const s32 *count;    // tokens of the step
};

// storeAny has a warp store 32 numbers of a key or a value; grid (those of a token / 4, T).
template <class C> INLINE void storeAny(const StoreArgs &a) {
  waitForPrevious();
  allowNext();
  const AnyPool &p = a.pool;
  const int token = blockY(), lane = tidX() % 32, keys = (p.keyDim + 31) / 32, values = (p.valueDim + 31) / 32;
  int unit = blockX() * 4 + tidX() / 32;
  if (token >= *a.count || unit >= p.kvHeads * (keys + values)) return;
  const int head = unit / (keys + values);
  unit %= keys + values;
  const bool key = unit < keys;
  const int dim = key ? p.keyDim : p.valueDim, block = key ? unit : unit - keys, i = 32 * block + lane;
  const Place place = a.table.places[token];
  const Slot slot = slotIn(p, a.table, place.shift, place.position);
  const Numbers to = key ? keyOf<C>(p, slot, head) : valueOf<C>(p, slot, head);
  const float *k = a.k + s64(token) * a.kStride, *v = a.v + s64(token) * a.vStride;
  const auto inputAt = [&](int i) ALWAYS {
    if (a.latent > 0) return i < a.latent ? k[head * a.latent + i] : v[head * (dim - a.latent) + i - a.latent];
    return key ? k[head * dim + i] : v[head * dim + i];
  };
  const float x = i < dim ? inputAt(i) : 0;
  bool lost = false;
  u16 scale = 0;
  if constexpr (C::shared == wholeHead) {
    int largest = 0;
    for (int j = lane; j < dim; j += 32) largest = maxOf(largest, bitsOf(inputAt(j)));
    scale = scaleOfHead(warpMax(largest), lost);
  }
  const typename C::Number number = keep(C{}, x, scale, lost);
  if (i < dim) *reinterpret_cast<typename C::Number *>(placeOf<C>(to, i)) = number;
  if (C::shared && scaleOf<C>(32 * block) == block && lane == 0) *reinterpret_cast<u16 *>(to.scales + s64(block) * to.scalesApart) = scale;
  if (lost && lane == 0) __atomic_fetch_min(a.overflow + a.sequence[token], a.layer, __ATOMIC_RELAXED);
}

// --- Attending

constexpr int anyKeyDim = 640, anyValueDim = 512; // at most
constexpr int anyPasses = anyValueDim / blockThreads;

struct AnyAttentionArgs {
  const float *q; // [T, stride], normalised and turned
  s32 stride, heads;
  s32 values; // length of a value
  s32 latent; // 1: values are the beginning of keys
  float scale, softcap;
  s32 window, chunk;  // what a token sees; 0: all
  const float *sinks; // [heads], or 0
  AnyPool pool;
  Table table;
  const s32 *count;
  Forms out;      // [T][heads*values]; f32 alone where values is no multiple of 32
  float *partial; // [T][groups][maxSegments][8][values+2] top, sum and values of segments
  s32 *tickets;   // [T][groups], 0 before and after
  s32 split;      // 1: blocks share the segments of a token
  s32 maxSegments;
};

template <int H> struct AnyShared {
  alignas(16) float q[H * anyKeyDim];
  float weight[runs][runTokens][H];
  float value[runs][blockThreads]; // of a head
  float top[H][runs], sum[H][runs];
  int last;
};

// scoresOf sets score to the products of q [H][dim] with a key.
template <class C, int H> INLINE void scoresOf(float (&score)[H], const float *q, const Numbers &key, int dim) {
  UNROLL for (int h = 0; h < H; h++) score[h] = 0;
  if (key.together % 4 != 0) {
    for (int i = 0; i < dim; i++) {
      const float k = numberAt(C{}, key, i);
      UNROLL for (int h = 0; h < H; h++) score[h] = fma(q[h * dim + i], k, score[h]);
    }
    return;
  }
  constexpr int together = 4; // loads under way
  _Pragma("unroll 1") for (int from = 0; from < dim; from += 4 * together) {
    float4 k[together];
    UNROLL for (int j = 0; j < together; j++) {
      if (from + 4 * j < dim) k[j] = fourNumbers(C{}, key, from + 4 * j);
    }
    UNROLL for (int j = 0; j < together; j++) {
      if (from + 4 * j >= dim) break;
      UNROLL for (int h = 0; h < H; h++) {
        const float4 x = *reinterpret_cast<const float4 *>(q + h * dim + from + 4 * j);
        score[h] = fma(x.x, k[j].x, score[h]);
        score[h] = fma(x.y, k[j].y, score[h]);
        score[h] = fma(x.z, k[j].z, score[h]);
        score[h] = fma(x.w, k[j].w, score[h]);
      }
    }
  }
}

// Whole is what a block has of n heads so far: their tops and sums, and numbers tidX(), tidX()+256
// and so on of each.
template <int H> struct Whole {
  float top[H], sum[H], value[H][anyPasses];
  METHOD void begin(const AnyAttentionArgs &a, int head, int n) {
    UNROLL for (int h = 0; h < H; h++) {
      top[h] = -infinity, sum[h] = 0;
      if (a.sinks && h < n) top[h] = a.sinks[head + h] * log2e, sum[h] = 1;
      UNROLL for (int p = 0; p < anyPasses; p++) value[h][p] = 0;
    }
  }
  // add joins a segment.
  METHOD void add(int h, float nextTop, float nextSum, const float (&next)[anyPasses]) {
    UNROLL for (int p = 0; p < anyPasses; p++) {
      Part all{top[h], sum[h], value[h][p]};
      join(all, Part{nextTop, nextSum, next[p]});
      value[h][p] = all.value;
      if (p == anyPasses - 1) top[h] = all.top, sum[h] = all.sum;
    }
  }
};

// attendAny does what a block does: H heads at most of one token that read one key/value head.
template <class C, int H> INLINE void attendAny(const AnyAttentionArgs &a) {
  __shared__ AnyShared<H> s;
  const AnyPool &pool = a.pool;
  const int token = blockZ(), group = blockY(), warp = tidX() / 32, lane = tidX() % 32, dim = pool.keyDim;
  const Place place = a.table.places[token];
  waitForPrevious();
  allowNext();
  if (token >= *a.count) return;
  const int share = a.heads / pool.kvHeads, chunks = (share + H - 1) / H, kvHead = group / chunks;
  const int head = kvHead * share + group % chunks * H, n = minOf(H, share - group % chunks * H);
  const int last = place.position;
  const int first = a.chunk > 0 ? last / a.chunk * a.chunk : a.window > 0 ? maxOf(0, last - a.window + 1) : 0;
  const int lowestSegment = first / segmentTokens, segments = last / segmentTokens - lowestSegment + 1;
  const bool apart = a.split && gridX() > 1 && segments > 1 && segments <= a.maxSegments;
  const int blocks = apart ? minOf(segments, gridX()) : 1;
  if (blockX() >= blocks) return;
  const s64 number = s64(token) * pool.kvHeads * chunks + group, partApart = s64(H) * (a.values + 2);
  float *partial = a.partial + number * a.maxSegments * partApart;

  // Whether numbers of values are read four at a time.
  const bool fours = a.latent ? dim % C::chunk == 0 : a.values % 4 == 0 && s64(pool.kvHeads) * dim * pool.pageTokens % 4 == 0;
  const float by = a.softcap > 0 ? 1.0f : a.scale * log2e;
  const float *q = a.q + s64(token) * a.stride + s64(head) * dim;
  for (int i = tidX(); i < H * dim; i += blockThreads) s.q[i] = i < n * dim ? q[i] * by : 0.0f;
  syncBlock();

  Whole<H> all;
  all.begin(a, head, n);
  _Pragma("unroll 1") for (int i = blockX(); i < segments; i += blocks) {
    const int begin = (lowestSegment + i) * segmentTokens + warp * runTokens;
    // Of this run are visible lo to hi-1. Nothing else is read: its memory holds anything.
    const int lo = maxOf(first - begin, 0), hi = minOf(last + 1 - begin, runTokens);
    const bool any = lo < hi;
    float score[H];
    Slot slot{};
    if (any) {
      slot = slotIn(pool, a.table, place.shift, begin + minOf(maxOf(lane, lo), hi - 1));
      scoresOf<C, H>(score, s.q, keyOf<C>(pool, slot, kvHead), dim);
      UNROLL for (int h = 0; h < H; h++) {
        if (a.softcap > 0) score[h] = a.softcap * tanhOf(divide(score[h] * a.scale, a.softcap)) * log2e;
        if (lane < lo || lane >= hi) score[h] = -infinity;
        const float top = warpMax(score[h]);
        if (lane == 0) s.top[h][warp] = top;
      }
    } else if (lane < H) {
      s.top[lane][warp] = -infinity;
    }
    syncBlock();
    float top[H];
    UNROLL for (int h = 0; h < H; h++) {
      top[h] = s.top[h][0];
      UNROLL for (int r = 1; r < runs; r++) top[h] = maxOf(top[h], s.top[h][r]);
      float weight = 0;
      if (any && lane >= lo && lane < hi) weight = exp2Of(score[h] - top[h]);
      s.weight[warp][lane][h] = weight;
      const float sum = warpSum(weight);
      if (lane == 0) s.sum[h][warp] = sum;
    }
    syncWarp();

    float part[H][anyPasses];
    UNROLL for (int h = 0; h < H; h++) {
      UNROLL for (int p = 0; p < anyPasses; p++) part[h][p] = 0;
    }
    _Pragma("unroll 1") for (int p = 0; p < anyPasses; p++) {
      if (blockThreads * p >= a.values) break;
      // A lane has eight numbers of the values side by side.
      constexpr int each = blockThreads / 32;
      const int from = blockThreads * p + each * lane;
      float value[H][each] = {};
      _Pragma("unroll 1") for (int t = lo; t < hi; t++) {
        const Slot at{s64(shuffleFrom(u32(slot.page >> 32), t)) << 32 | shuffleFrom(u32(slot.page), t), shuffleFrom(slot.at, t)};
        const Numbers v = a.latent ? keyOf<C>(pool, at, kvHead) : valueOf<C>(pool, at, kvHead);
        float x[each];
        if (fours) {
          UNROLL for (int k = 0; k < each; k += 4) {
            const float4 four = from + k < a.values ? fourNumbers(C{}, v, from + k) : float4{};
            UNROLL for (int j = 0; j < 4; j++) x[k + j] = four[j];
          }
        } else {
          UNROLL for (int k = 0; k < each; k++) x[k] = from + k < a.values ? numberAt(C{}, v, from + k) : 0.0f;
        }
        UNROLL for (int h = 0; h < H; h++) {
          const float weight = s.weight[warp][t][h];
          UNROLL for (int k = 0; k < each; k++) value[h][k] = fma(weight, x[k], value[h][k]);
        }
      }
      UNROLL for (int h = 0; h < H; h++) {
        UNROLL for (int k = 0; k < each; k++) s.value[warp][each * lane + k] = value[h][k];
        syncBlock();
        float sum = 0;
        UNROLL for (int r = 0; r < runs; r++) sum = sum + s.value[r][tidX()];
        UNROLL for (int k = 0; k < anyPasses; k++) {
          if (k == p) part[h][k] = sum;
        }
        syncBlock();
      }
    }

    UNROLL for (int h = 0; h < H; h++) {
      float sum = 0;
      UNROLL for (int r = 0; r < runs; r++) sum = sum + s.sum[h][r];
      if (!apart) {
        all.add(h, top[h], sum, part[h]);
        continue;
      }
      if (h >= n) continue;
      float *to = partial + i * partApart + h * (a.values + 2);
      if (tidX() == 0) to[0] = top[h], to[1] = sum;
      UNROLL for (int p = 0; p < anyPasses; p++) {
        if (blockThreads * p + tidX() < a.values) to[2 + blockThreads * p + tidX()] = part[h][p];
      }
    }
    syncBlock(); // tops and sums have been read
  }

  if (apart) {
    if (!drawsLast(a.tickets + number, blocks, s.last)) return;
    for (int i = 0; i < segments; i++) {
      UNROLL for (int h = 0; h < H; h++) {
        if (h >= n) continue;
        const float *from = partial + i * partApart + h * (a.values + 2);
        float part[anyPasses];
        UNROLL for (int p = 0; p < anyPasses; p++) part[p] = blockThreads * p + tidX() < a.values ? from[2 + blockThreads * p + tidX()] : 0.0f;
        all.add(h, from[0], from[1], part);
      }
    }
  }
  UNROLL for (int h = 0; h < H; h++) {
    if (h >= n) break;
    UNROLL for (int p = 0; p < anyPasses; p++) {
      const int at = blockThreads * p + tidX();
      if (at - lane >= a.values) continue;
      const float v = divide(all.value[h][p], all.sum[h]);
      const int col = (head + h) * a.values + at;
      if (a.values % 32 == 0) storeBlock(a.out, token, col / 32, lane, v);
      else if (at < a.values) a.out.f32[s64(token) * a.out.stride + col] = v;
    }
  }
}

// grid (split ? segments : 1, kvHeads*ceil(heads/kvHeads/H), T), 256 threads.
// cost: of many tokens the second-level cache: keys and values are read for H heads of one token.
#define ANY_ATTENTION(cache)                                                                                         \
  extern "C" __global__ void __launch_bounds__(128) store(const StoreArgs a) { storeAny<cache>(a); }                    \
  extern "C" __global__ void __launch_bounds__(blockThreads, 2) attend_1(const AnyAttentionArgs a) { attendAny<cache, 1>(a); } \
  extern "C" __global__ void __launch_bounds__(blockThreads, 2) attend_4(const AnyAttentionArgs a) { attendAny<cache, 4>(a); } \
  extern "C" __global__ void __launch_bounds__(blockThreads, 1) attend_8(const AnyAttentionArgs a) { attendAny<cache, 8>(a); }
