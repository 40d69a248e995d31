// KV cache pages whose values may differ in length from keys or be absent: their layout, storing,
// and scores.
#pragma once
#include "head.cuh"
#include "norm.cuh"
#include "rotation.cuh"

// An AnyPool is a Pool whose values may differ in length from its keys or be absent, and which has
// a row after each multiple of every tokens. If both lengths are equal and every is 1, the layout
// is that of a Pool.
struct AnyPool {
  u8 *base;
  s64 apart;
  s32 pageTokens;
  s32 every; // tokens of a row; 1: each token has a row
  s32 rows;  // of a page: pageTokens/every, rounded up
  s32 kvHeads;
  s32 keyDim, valueDim;
};

// slotIn returns the slot of row number row, which is in the page of the token that completes the
// row.
INLINE Slot slotIn(const AnyPool &p, const Table &t, int shift, int row) {
  const int page = ((row + 1) * p.every - 1) / p.pageTokens;
  return Slot{t.pages[shift + page] * p.apart, row - page * p.pageTokens / p.every};
}

// A Numbers locates the elements of a position's key or value, and their scales. Runs of together
// elements are contiguous; each begins apart bytes after the one before.
struct Numbers {
  u8 *at, *scales;
  int together, apart, scalesApart;
};

template <class C> INLINE Numbers keyOf(const AnyPool &p, const Slot &s, int head) {
  const int e = chunkLength<C>(p.keyDim);
  u8 *page = p.base + s.page, *scales = page + s64(p.kvHeads) * (p.keyDim + p.valueDim) * p.rows * C::bytes;
  return Numbers{page + (s64(head) * p.keyDim * p.rows + s.at * e) * C::bytes,
                 scales + (s64(head) * scalesOf<C>(p.keyDim) * p.rows + s.at) * 2, e, p.rows * e * C::bytes, p.rows * 2};
}
template <class C> INLINE Numbers valueOf(const AnyPool &p, const Slot &s, int head) {
  u8 *page = p.base + s.page, *scales = page + s64(p.kvHeads) * (p.keyDim + p.valueDim) * p.rows * C::bytes;
  const s64 row = s64(head) * p.rows + s.at;
  return Numbers{page + (s64(p.kvHeads) * p.keyDim * p.rows + row * p.valueDim) * C::bytes,
                 scales + (s64(p.kvHeads) * scalesOf<C>(p.keyDim) * p.rows + row * scalesOf<C>(p.valueDim)) * 2, p.valueDim, 0, 2};
}

template <class C> INLINE u8 *placeOf(const Numbers &n, int i) {
  return n.at + s64(i / n.together) * n.apart + i % n.together * C::bytes;
}

INLINE float numberAt(CacheF32, const Numbers &n, int i) { return *reinterpret_cast<const float *>(placeOf<CacheF32>(n, i)); }
INLINE float numberAt(CacheF16, const Numbers &n, int i) { return halfToFloat(*reinterpret_cast<const u16 *>(placeOf<CacheF16>(n, i))); }
// numberOf decodes an element without its scale.
INLINE float numberOf(CacheQ8, u32 code) { return float(s8(code)); }
INLINE float numberOf(CacheF8, u32 code) { return halfToFloat(u16((code & 0x7f) << 7 | (code & 0x80) << 8)); }
template <class C> INLINE float numberAt(C, const Numbers &n, int i) {
  const u16 scale = *reinterpret_cast<const u16 *>(n.scales + s64(scaleOf<C>(i)) * n.scalesApart);
  return numberOf(C{}, *placeOf<C>(n, i)) * halfToFloat(scale);
}

// fourNumbers reads elements i to i+3, for i a multiple of 4. They are contiguous, at a multiple of
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
  const float *k, *v; // [T, kStride], [T, vStride] or 0
  s32 kStride, vStride;
  // Elements of a head of k in a key. A longer key continues with a head of v, and there are no
  // values. 0: k and v are keys and values.
  s32 latent;
  s32 layer;
  AnyPool pool;
  Table table;
  const s32 *sequence; // [T] sequence of each token
  s32 *overflow;       // [S] lowered to layer where the cache cannot hold a finite number
  const s32 *count;    // tokens of the step
  // A latent key of one head can have its part of k normalized and its part of v rotated.
  const float *norm; // [latent] weights of the RMS norm, or 0: there is none
  Rotation by;
  float eps;
  s32 pad;
};

// normOf returns the factor of an RMS norm of a row of cols columns, a multiple of 4, with one warp.
// Its sums are in the order of the kernel norm.
INLINE float normOf(const float *x, int cols, float eps, int lane) {
  alignas(16) float sums[normParts];
  UNROLL for (int part = 0; part < normParts; part++) {
    sums[part] = 0;
    if (128 * part >= cols) continue;
    float4 squares = {};
    for (int i = 128 * part + 4 * lane; i < cols; i += normColumns) squares = squaresAdded(squares, *reinterpret_cast<const float4 *>(x + i));
    sums[part] = warpSum(sumOf(squares));
  }
  return scaleOf(sumOfParts(sums), divide(1.0f, float(cols)), eps);
}

// storeAny stores 32 elements of a key or a value with each warp. Grid (warps of a token / 4, T).
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
  const int end = place.position + 1;
  if (end % p.every != 0) return;
  const Slot slot = slotIn(p, a.table, place.shift, end / p.every - 1);
  const Numbers to = key ? keyOf<C>(p, slot, head) : valueOf<C>(p, slot, head);
  const float *k = a.k + s64(token) * a.kStride, *v = a.v + s64(token) * a.vStride;
  const float scaled = a.norm ? normOf(k, a.latent, a.eps, lane) : 1;
  const auto inputAt = [&](int i) ALWAYS {
    if (a.latent > 0) {
      if (i >= a.latent) return rotatedAt(a.by, token, v + head * (dim - a.latent), i - a.latent);
      return a.norm ? k[i] * scaled * a.norm[i] : k[head * a.latent + i];
    }
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

// --- Scores

constexpr int anyKeyDim = 640; // at most

// scoresOf sets score to the dot products of q [H][dim] and a key.
template <class C, int H> INLINE void scoresOf(float (&score)[H], const float *q, const Numbers &key, int dim) {
  UNROLL for (int h = 0; h < H; h++) score[h] = 0;
  if (key.together % 4 != 0) {
    for (int i = 0; i < dim; i++) {
      const float k = numberAt(C{}, key, i);
      UNROLL for (int h = 0; h < H; h++) score[h] = fma(q[h * dim + i], k, score[h]);
    }
    return;
  }
  constexpr int together = 4; // loads in flight
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
