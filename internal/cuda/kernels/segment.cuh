// The arithmetic of attention to the pages of a sequence, which all its kernels share.
//
// A context is cut at absolute multiples of 256 positions, a segment, and that into
// runs of 32, one for each warp. Every segment is computed from nothing, its runs
// added in ascending order, and the segments of a row are joined in ascending order
// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018): so
// the bits of a row depend neither on who did which segment nor on other rows.
#pragma once
#include "activation.cuh"
#include "forms.cuh"
#include "kv.cuh"

struct AttentionArgs {
  const float *q;     // [T][heads*dim], normalised and turned
  s32 stride;         // of q: from a row to the next, in values
  s32 heads, kvHeads; // query head h reads key/value head h/(heads/kvHeads)
  s32 dim;            // of a head: 1 to 256
  float scale;        // of q.k
  float softcap;      // c: a score becomes c*tanh(score/c); 0: it does not
  s32 window;         // a token sees itself and the window-1 before it; 0: all of the past
  const float *sinks; // [heads] a logit that takes part in a head's softmax and adds no value, or 0
  Pool pool;          // with kvHeads and dim as above
  Table table;
  const s32 *count; // tokens of the step
  Forms out;        // [T][heads*dim]; f32 alone where dim is no multiple of 32
  float *partial;   // [T][groups][maxSegments][8][dim+2]: largest score, sum of weights, weighted values
  s32 *tickets;     // [T][groups], 0 before and after
  s32 split;        // 1: blocks share the segments of a token; 0: one does them all
  s32 maxSegments;  // of partial; a token that sees more is done by one block
};

constexpr int runTokens = 32;
constexpr int runs = 8; // and warps
constexpr int segmentTokens = runs * runTokens;
constexpr int blockThreads = 32 * runs;
constexpr int blockHeads = 8; // query heads that a block serves at most
constexpr float log2e = 1.44269504f;
constexpr float infinity = __builtin_inff();

// --- Scores

// multiplyKeys adds to sum[h] the products of q[h] [dim] and E values of a key.
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

INLINE float lowHalf(u32 v) { return halfToFloat(u16(v)); }
INLINE float highHalf(u32 v) { return halfToFloat(u16(v >> 16)); }

// signedByte is byte i of v as a number. With 128 added it is the end of a float's
// mantissa: two instructions rather than a slow conversion.
INLINE float signedByte(u32 v, int i) {
  return asFloat(__nvvm_prmt(v ^ 0x80808080u, 0x4b000000u, 0x7440u | u32(i))) - 8388736.0f;
}

// Chunks of 16 bytes as numbers.
INLINE void unpack(CacheF32, float (&k)[4], uint4 v) {
  k[0] = asFloat(v.x), k[1] = asFloat(v.y), k[2] = asFloat(v.z), k[3] = asFloat(v.w);
}
INLINE void unpack(CacheF16, float (&k)[8], uint4 v) {
  k[0] = lowHalf(v.x), k[1] = highHalf(v.x), k[2] = lowHalf(v.y), k[3] = highHalf(v.y);
  k[4] = lowHalf(v.z), k[5] = highHalf(v.z), k[6] = lowHalf(v.w), k[7] = highHalf(v.w);
}
INLINE void unpack(CacheQ8, float (&k)[16], uint4 v) {
  UNROLL for (int i = 0; i < 4; i++) {
    k[i] = signedByte(v.x, i), k[4 + i] = signedByte(v.y, i);
    k[8 + i] = signedByte(v.z, i), k[12 + i] = signedByte(v.w, i);
  }
}

INLINE float loneKey(CacheF32, const u8 *p) { return *reinterpret_cast<const float *>(p); }
INLINE float loneKey(CacheF16, const u8 *p) { return halfToFloat(*reinterpret_cast<const u16 *>(p)); }
INLINE float loneKey(CacheQ8, const u8 *) { return 0; } // its heads are multiples of a chunk

// A Key is where the key of a lane lies: chunks of it are apart bytes from each other,
// or single numbers where the head is no multiple of a chunk, and scales scalesApart.
struct Key {
  const u8 *at, *scales;
  int apart, scalesApart;
};
template <class C> INLINE Key keyIn(const Pool &p, const Slot &s, int head) {
  return Key{p.base + keyAt<C>(p, s, head), C::bytes == 1 ? p.base + keyScaleAt(p, s, head) : nullptr, chunkApart<C>(p), scalesApart(p)};
}

// addChunks adds to score[h] the products of q[h] [dim] and chunks of a key, a chain of
// fma in ascending order. A block of a Q8_0 cache is two chunks: whole numbers first,
// then their scale, and blocks are added up.
template <class C, int N, int H>
INLINE void addChunks(float (&score)[H], const float *q, int dim, const uint4 *raw, const u16 *by, int n) {
  constexpr int E = C::chunk;
  if constexpr (C::bytes == 1) {
    UNROLL for (int b = 0; b < N / 2; b++) {
      float sum[H];
      UNROLL for (int h = 0; h < H; h++) sum[h] = 0;
      UNROLL for (int i = 0; i < 2; i++) {
        float k[E];
        unpack(C{}, k, raw[2 * b + i]);
        multiplyKeys<E, H>(sum, q + (2 * b + i) * E, dim, k);
      }
      UNROLL for (int h = 0; h < H; h++) score[h] = score[h] + sum[h] * halfToFloat(by[b]);
    }
  } else {
    UNROLL for (int i = 0; i < N; i++) {
      if (i >= n) break;
      float k[E];
      unpack(C{}, k, raw[i]);
      multiplyKeys<E, H>(score, q + i * E, dim, k);
    }
  }
}

// keyScores sets score to the products of q [H][dim] with the key of this lane, a
// chain of fma over the head in ascending order. D is dim, or 0 where it is not known.
template <class C, int D, int H> INLINE void keyScores(float (&score)[H], const float *q, const Key &key, int dim) {
  constexpr int E = C::chunk;
  // So many chunks are worked on at a time, while as many more are on their way.
  constexpr int step = C::bytes == 1 ? (D ? 4 : 2) : (D ? 8 : 4);
  UNROLL for (int h = 0; h < H; h++) score[h] = 0;
  if (!D && dim % E != 0) {
    for (int i = 0; i < dim; i++) {
      const float k = loneKey(C{}, key.at + s64(i) * key.apart);
      UNROLL for (int h = 0; h < H; h++) score[h] = fma(q[h * dim + i], k, score[h]);
    }
    return;
  }
  const int chunks = dim / E;
  uint4 next[step];
  u16 nextBy[step];
  const auto load = [&](int c) {
    UNROLL for (int i = 0; i < step; i++) {
      if (D || c + i < chunks) next[i] = *reinterpret_cast<const uint4 *>(key.at + s64(c + i) * key.apart);
    }
    if constexpr (C::bytes == 1) {
      UNROLL for (int b = 0; b < step / 2; b++) nextBy[b] = *reinterpret_cast<const u16 *>(key.scales + s64(c / 2 + b) * key.scalesApart);
    }
  };
  if constexpr (D) load(0);
  _Pragma("unroll 1") for (int c = 0; c < chunks; c += step) {
    if constexpr (!D) load(c);
    uint4 raw[step];
    u16 by[step];
    UNROLL for (int i = 0; i < step; i++) raw[i] = next[i], by[i] = nextBy[i];
    if (D && c + step < chunks) load(c + step);
    addChunks<C, step, H>(score, q + c * E, dim, raw, by, D ? step : chunks - c);
  }
}

// capScores caps products of this lane and makes exponents of them. They take turns in
// score[0], so that a loop can count them: few models do it, and its code is long.
template <int H> INLINE void capScores(float (&score)[H], const AttentionArgs &a) {
  _Pragma("unroll 1") for (int i = 0; i < H; i++) {
    const float capped = a.softcap * tanhOf(divide(score[0] * a.scale, a.softcap)) * log2e;
    UNROLL for (int h = 1; h < H; h++) score[h - 1] = score[h];
    score[H - 1] = capped;
  }
}

// --- Values

// A ValueRow is what a lane holds of the value of a position: count numbers, beside
// each other where the head's length D is known, else every 32nd.
template <class C, int D> struct ValueRow {
  static constexpr int count = D / 32;
  static constexpr int bytes = count * C::bytes;
  static constexpr int depth = bytes == 16 ? 4 : 8; // so many are asked for at a time
  u32 raw[(bytes + 3) / 4];
  u32 scale;
};
template <class C> struct ValueRow<C, 0> {
  static constexpr int count = maxHeadDim / 32;
  static constexpr int depth = 2;
  float number[count];
};

template <class C, int D> INLINE void loadRow(ValueRow<C, D> &r, const u8 *row, const u8 *scales, int, int lane) {
  constexpr int bytes = ValueRow<C, D>::bytes;
  const u8 *at = row + lane * bytes;
  if constexpr (bytes == 16) {
    const uint4 v = *reinterpret_cast<const uint4 *>(at);
    r.raw[0] = v.x, r.raw[1] = v.y, r.raw[2] = v.z, r.raw[3] = v.w;
  } else if constexpr (bytes == 8) {
    const uint2 v = *reinterpret_cast<const uint2 *>(at);
    r.raw[0] = v.x, r.raw[1] = v.y;
  } else if constexpr (bytes == 4) {
    r.raw[0] = *reinterpret_cast<const u32 *>(at);
  } else {
    r.raw[0] = *reinterpret_cast<const u16 *>(at);
  }
  if constexpr (C::bytes == 1) r.scale = *reinterpret_cast<const u16 *>(scales + lane * bytes / scaleBlock * 2);
}

template <class C> INLINE void loadRow(ValueRow<C, 0> &r, const u8 *row, const u8 *scales, int dim, int lane) {
  UNROLL for (int j = 0; j < ValueRow<C, 0>::count; j++) {
    const int i = 32 * j + lane;
    r.number[j] = 0;
    if (i >= dim) continue;
    const u8 *at = row + i * C::bytes;
    if constexpr (C::bytes == 4) r.number[j] = *reinterpret_cast<const float *>(at);
    if constexpr (C::bytes == 2) r.number[j] = halfToFloat(*reinterpret_cast<const u16 *>(at));
    if constexpr (C::bytes == 1) {
      r.number[j] = float(*reinterpret_cast<const s8 *>(at)) * halfToFloat(*reinterpret_cast<const u16 *>(scales + 2 * j));
    }
  }
}

// numberOf is number i of a lane; a byte times its scale is exact.
template <class C, int D> INLINE float numberOf(const ValueRow<C, D> &r, int i) {
  if constexpr (D == 0) return r.number[i];
  else if constexpr (C::bytes == 4) return asFloat(r.raw[i]);
  else if constexpr (C::bytes == 2) return i % 2 ? highHalf(r.raw[i / 2]) : lowHalf(r.raw[i / 2]);
  else return signedByte(r.raw[i / 4], i % 4) * halfToFloat(u16(r.scale));
}

// --- Segments

// A Part is one element of a head: the weighted values of some positions, with the
// largest of their scores and the sum of their weights, 2^(score-top).
struct Part {
  float top, sum, value;
};

// join adds the part that follows. Nothing before has a top of -inf and a sum of 0;
// a part whose scores are all -inf has a sum that is NaN.
INLINE void join(Part &all, const Part &next) {
  const float top = maxOf(all.top, next.top);
  const float a = exp2Of(all.top - top), b = exp2Of(next.top - top);
  all.top = top;
  all.sum = fma(next.sum, b, all.sum * a);
  all.value = fma(next.value, b, all.value * a);
}

// largestOf and sumOf are over the runs of a segment; sums go up from 0, and so does
// what they are of: a run that is not visible adds another 0.
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

// --- Segments that several blocks did

// joinApart joins the parts of n segments that blocks have written, as join does, and
// sets value to the results: number k of a thread is number tidX()+256k of a block's
// heads, of which there are heads, in parts written of H. The factors of a segment are
// the same for all numbers of a head: warp h makes those of head h, for 32 segments at
// a time, in its row of slot.
template <int H, int N, int S>
INLINE void joinApart(float (&value)[N], const float *partial, int n, const float *sinks, int heads, int dim, float (&slot)[runs][S]) {
  static_assert(S >= 96);
  constexpr int depth = 4; // segments asked for at a time
  const int warp = tidX() / 32, lane = tidX() % 32;
  const s64 apart = s64(H) * (dim + 2);
  const bool mine = warp < heads;

  float sum[N];
  int head[N];
  UNROLL for (int k = 0; k < N; k++) {
    head[k] = (tidX() + k * blockThreads) / dim;
    sum[k] = sinks ? 1 : 0, value[k] = 0;
  }
  float before = mine && sinks ? sinks[warp] * log2e : -infinity;
  for (int from = 0; from < n; from += 32) {
    if (mine) {
      float next = -infinity, nextSum = 0;
      if (from + lane < n) {
        const float *p = partial + (from + lane) * apart + warp * (dim + 2);
        next = p[0], nextSum = p[1];
      }
      float top = next; // the largest so far
      UNROLL for (int m = 1; m < 32; m *= 2) {
        const float other = shuffleFrom(top, (lane - m) & 31);
        if (lane >= m) top = maxOf(top, other);
      }
      top = maxOf(before, top);
      const float last = shuffleFrom(top, (lane - 1) & 31);
      float *by = slot[warp] + lane;
      by[0] = exp2Of((lane > 0 ? last : before) - top);
      by[32] = exp2Of(next - top);
      by[64] = nextSum;
      before = shuffleFrom(top, 31);
    }
    syncBlock();
    const int some = minOf(32, n - from);
    _Pragma("unroll 1") for (int i = 0; i < some; i += depth) {
      float x[depth][N];
      UNROLL for (int j = 0; j < depth; j++) {
        const float *p = partial + (from + i + j) * apart + 2 + tidX();
        UNROLL for (int k = 0; k < N; k++) {
          if (i + j < some && head[k] < heads) x[j][k] = p[k * blockThreads + 2 * head[k]];
        }
      }
      UNROLL for (int j = 0; j < depth; j++) {
        UNROLL for (int k = 0; k < N; k++) {
          if (i + j >= some || head[k] >= heads) continue;
          const float *by = slot[head[k]] + i + j;
          sum[k] = fma(by[64], by[32], sum[k] * by[0]);
          value[k] = fma(x[j][k], by[32], value[k] * by[0]);
        }
      }
    }
    syncBlock();
  }
  UNROLL for (int k = 0; k < N; k++) value[k] = divide(value[k], sum[k]);
}

// drawsLast says whether this block is the last of some to come here with that ticket,
// which is 0 again then. What the others have written is there. The barrier puts the
// writes of all threads before the first one's ticket, which releases them; the block
// that draws the last has acquired all of them.
INLINE bool drawsLast(s32 *ticket, int blocks, int &last) {
  syncBlock();
  if (tidX() == 0) {
    last = atomicAddDevice(ticket, 1) == blocks - 1;
    if (last) *ticket = 0;
  }
  syncBlock();
  return last;
}
