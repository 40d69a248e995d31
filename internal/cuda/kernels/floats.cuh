// The arithmetic of attention to a KV cache of float32. A segment is cut into runs of 32 positions,
// one for each warp. The sums of a run are chains of fma in ascending order, and runs are added in
// ascending order. A top is the largest exponent.
#pragma once
#include "segment.cuh"

// --- Scores

// multiplyKeys adds to sum[h] the products of q[h] [dim] and E elements of a key.
template <int E, int H> INLINE void multiplyKeys(float (&sum)[H], const float *q, int dim, const float (&k)[E]) {
  UNROLL for (int h = 0; h < H; h++) {
    UNROLL for (int i = 0; i < E; i += 4) {
      const float4 x = *reinterpret_cast<const float4 *>(q + h * dim + i);
      sum[h] = fma(x.x, k[i], sum[h]);
      sum[h] = fma(x.y, k[i + 1], sum[h]);
      sum[h] = fma(x.z, k[i + 2], sum[h]);
      sum[h] = fma(x.w, k[i + 3], sum[h]);
    }
  }
}

// A Key locates the key of a lane: chunks of 4 elements, or single elements if the head's length is
// not a multiple of 4. Each begins apart bytes after the one before.
struct Key {
  const u8 *at;
  int apart;
};
INLINE Key keyIn(const Pool &p, const Slot &s, int head) { return Key{p.base + keyAt<CacheF32>(p, s, head), chunkApart<CacheF32>(p)}; }

INLINE void unpack(float (&k)[4], uint4 v) { k[0] = asFloat(v.x), k[1] = asFloat(v.y), k[2] = asFloat(v.z), k[3] = asFloat(v.w); }

// addChunks adds to score[h] the products of q[h] [dim] and n chunks of a key, as a chain of fma in
// ascending order.
template <int N, int H> INLINE void addChunks(float (&score)[H], const float *q, int dim, const uint4 *raw, int n) {
  UNROLL for (int i = 0; i < N; i++) {
    if (i >= n) break;
    float k[4];
    unpack(k, raw[i]);
    multiplyKeys<4, H>(score, q + i * 4, dim, k);
  }
}

// keyScores sets score to the dot products of q [H][dim] with the key of this lane, chains of fma
// over the head in ascending order. D is dim, or 0 if dim is not known at compile time.
template <int D, int H> INLINE void keyScores(float (&score)[H], const float *q, const Key &key, int dim) {
  constexpr int step = D ? 8 : 4; // chunks computed at a time, with as many in flight
  UNROLL for (int h = 0; h < H; h++) score[h] = 0;
  if (!D && dim % 4 != 0) {
    for (int i = 0; i < dim; i++) {
      const float k = *reinterpret_cast<const float *>(key.at + s64(i) * key.apart);
      UNROLL for (int h = 0; h < H; h++) score[h] = fma(q[h * dim + i], k, score[h]);
    }
    return;
  }
  const int chunks = dim / 4;
  uint4 next[step];
  const auto load = [&](int c) {
    UNROLL for (int i = 0; i < step; i++) {
      if (D || c + i < chunks) next[i] = *reinterpret_cast<const uint4 *>(key.at + s64(c + i) * key.apart);
    }
  };
  if constexpr (D) load(0);
  _Pragma("unroll 1") for (int c = 0; c < chunks; c += step) {
    if constexpr (!D) load(c);
    uint4 raw[step];
    UNROLL for (int i = 0; i < step; i++) raw[i] = next[i];
    if (D && c + step < chunks) load(c + step);
    addChunks<step, H>(score, q + c * 4, dim, raw, D ? step : chunks - c);
  }
}

// capScores caps the products of this lane and makes them exponents. They rotate through score[0],
// so that the loop need not be unrolled: few models have a softcap, and its code is long.
template <int H> INLINE void capScores(float (&score)[H], const AttentionArgs &a) {
  _Pragma("unroll 1") for (int i = 0; i < H; i++) {
    const float capped = cappedExponent(score[0], a);
    UNROLL for (int h = 1; h < H; h++) score[h - 1] = score[h];
    score[H - 1] = capped;
  }
}

// --- Values

// A ValueRow is what a lane has of the value of a position: count elements, adjacent if the head's
// length D is known at compile time, else every 32nd.
template <int D> struct ValueRow {
  static constexpr int count = (D ? D : maxHeadDim) / 32;
  static constexpr int depth = D == 128 ? 4 : D == 64 ? 8 : 2; // rows loaded at a time
  float number[count];
};

template <int D> INLINE void loadRow(ValueRow<D> &r, const u8 *row, int, int lane) {
  const u8 *at = row + lane * (D / 8);
  if constexpr (D == 128) {
    const float4 v = *reinterpret_cast<const float4 *>(at);
    r.number[0] = v.x, r.number[1] = v.y, r.number[2] = v.z, r.number[3] = v.w;
  } else {
    const float2 v = *reinterpret_cast<const float2 *>(at);
    r.number[0] = v.x, r.number[1] = v.y;
  }
}
INLINE void loadRow(ValueRow<0> &r, const u8 *row, int dim, int lane) {
  UNROLL for (int j = 0; j < ValueRow<0>::count; j++) {
    const int i = 32 * j + lane;
    r.number[j] = i < dim ? *reinterpret_cast<const float *>(row + i * 4) : 0.0f;
  }
}

// --- Segments

// largestOf and sumOf reduce over the runs of a segment. Sums start from 0, and so do their terms:
// a run that is not visible adds another 0.
INLINE float largestOf(const float (&x)[runs]) {
  const float4 *p = reinterpret_cast<const float4 *>(x);
  const float4 a = p[0], b = p[1];
  return maxOf(maxOf(maxOf(a.x, a.y), maxOf(a.z, a.w)), maxOf(maxOf(b.x, b.y), maxOf(b.z, b.w)));
}
INLINE float sumOf(const float (&x)[runs]) {
  const float4 *p = reinterpret_cast<const float4 *>(x);
  const float4 a = p[0], b = p[1];
  return 0.0f + a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w;
}
