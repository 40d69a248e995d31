// Preparation of a token's heads for attention: queries and keys are normalised and rotated, keys
// and values are rounded to the numbers of the KV cache. A warp has one head; value j of lane i is
// element 32j+i.
#pragma once
#include "kv.cuh"

struct TurnArgs {
  // [T][heads*headDim], and twice [T][kvHeads*headDim]. k and v may be 0; kvHeads is 0 then.
  const float *q, *k, *v;
  s32 qStride, kStride, vStride;   // elements from a row to the next
  s32 heads, kvHeads, headDim;
  const float *qNorm, *kNorm;      // [headDim] weights of a head's RMS norm before rotation, or 0
  float qEps, kEps;                // of the norms
  const float2 *qAngles, *kAngles; // [T][dims/2] cosines and sines; 0: no rotation
  s32 qDims, kDims;                // how many of a head's elements, from the first, rotate; even
  s32 qInterleaved, kInterleaved;  // pairs are 0: (i, i+dims/2), 1: (2i, 2i+1)
  float *qOut;                     // [T][heads*headDim], may be q
  s32 qOutStride;
  Pool pool;                       // with kvHeads and headDim as above
  Table table;
  const s32 *sequence;             // [T] sequence of each token
  s32 *overflow;                   // [S] lowered to layer if the cache cannot hold a finite number
  s32 layer;
  const s32 *count;                // tokens of the step
};

// A Step is what is done to a head of queries or of keys: a norm and a rotation. Each may be 0.
struct Step {
  const float *norm;
  float eps;
  const float2 *angles; // of the token
  s32 dims;
  bool interleaved;
};
INLINE Step queryStep(const TurnArgs &a, int token) {
  return Step{a.qNorm, a.qEps, a.qAngles ? a.qAngles + s64(token) * (a.qDims / 2) : nullptr, a.qDims, a.qInterleaved != 0};
}
INLINE Step keyStep(const TurnArgs &a, int token) {
  return Step{a.kNorm, a.kEps, a.kAngles ? a.kAngles + s64(token) * (a.kDims / 2) : nullptr, a.kDims, a.kInterleaved != 0};
}

template <int N> INLINE void loadHead(float (&v)[N], const float *x, int dim, int lane) {
  UNROLL for (int j = 0; j < N; j++) v[j] = 32 * j + lane < dim ? x[32 * j + lane] : 0.0f;
}

// normalize sets v to x/sqrt(mean(x^2)+eps) * w. A head whose sum of squares overflows float32
// becomes NaN, rather than 0.
template <int N> INLINE void normalize(float (&v)[N], const float (&w)[N], float eps, int dim) {
  float sum = 0;
  UNROLL for (int j = 0; j < N; j++) sum = fma(v[j], v[j], sum);
  sum = warpSum(sum);
  float by = divide(1.0f, squareRoot(divide(sum, float(dim)) + eps));
  if (!isFinite(sum)) by = asFloat(0x7fc00000);
  UNROLL for (int j = 0; j < N; j++) v[j] = v[j] * by * w[j];
}

// partnerOf is the other index of the pair of index i, for i below dims.
INLINE int partnerOf(const Step &s, int i) {
  if (s.interleaved) return i ^ 1;
  return i >= s.dims / 2 ? i - s.dims / 2 : i + s.dims / 2;
}
INLINE bool isSecond(const Step &s, int i) { return s.interleaved ? i & 1 : i >= s.dims / 2; }

template <int N> INLINE void loadAngles(float2 (&by)[N], const Step &s, int lane) {
  UNROLL for (int j = 0; j < N; j++) {
    const int i = 32 * j + lane;
    by[j] = float2{1, 0};
    if (i < s.dims) by[j] = s.angles[s.interleaved ? i / 2 : minOf(i, partnerOf(s, i))];
  }
}

// turn rotates the pairs among the first dims elements. The other element of a pair may be in any
// lane, so the head goes through row, shared memory of this warp.
template <int N> INLINE void turn(float (&v)[N], float *row, const float2 (&by)[N], const Step &s, int lane) {
  UNROLL for (int j = 0; j < N; j++) {
    if (32 * j + lane < s.dims) row[32 * j + lane] = v[j];
  }
  syncWarp();
  UNROLL for (int j = 0; j < N; j++) {
    const int i = 32 * j + lane;
    if (i >= s.dims) continue;
    v[j] = fma(row[partnerOf(s, i)], isSecond(s, i) ? by[j].y : -by[j].y, v[j] * by[j].x);
  }
  syncWarp(); // row is free
}

// turnWhole does what turn does, for heads that are rotated as a whole and of which a lane has an even
// number of elements. The other element of a pair is in the same lane or the neighbour.
template <int N> INLINE void turnWhole(float (&v)[N], const float2 (&by)[N], const Step &s, int lane) {
  static_assert(N % 2 == 0);
  if (s.interleaved) {
    UNROLL for (int j = 0; j < N; j++) {
      const float other = shuffleXor(v[j], 1);
      v[j] = fma(other, lane & 1 ? by[j].y : -by[j].y, v[j] * by[j].x);
    }
    return;
  }
  UNROLL for (int j = 0; j < N / 2; j++) {
    const float first = v[j], second = v[j + N / 2];
    v[j] = fma(second, -by[j].y, first * by[j].x);
    v[j + N / 2] = fma(first, by[j].y, second * by[j].x);
  }
}

// prepareHead normalizes and rotates a head of D elements, or of dim if D is 0. w is the weights of the
// norm, by what loadAngles loads. row is shared memory of this warp, of a head's length.
template <int D, int N>
INLINE void prepareHead(float (&v)[N], const float (&w)[N], const float2 (&by)[N], const Step &step, int dim, float *row, int lane) {
  if (step.norm) normalize(v, w, step.eps, dim);
  if (!step.angles) return;
  if constexpr (D) {
    if (step.dims == D) return turnWhole(v, by, step, lane);
  }
  turn(v, row, by, step, lane);
}

// keep returns what the cache stores of 32 values of a head, one of each lane. It sets scale for a
// Q8_0 cache, and reads it for an F8_E4M3 cache. It sets lost if the cache cannot hold a finite
// value. Values that are not finite stay so. Lanes beyond the head have 0.
INLINE float keep(CacheF32, float v, u16 &, bool &) { return v; }
INLINE u16 keep(CacheF16, float v, u16 &, bool &lost) {
  const u16 h = floatToHalf(v);
  lost |= ballot(isFinite(v) && !isFinite(halfToFloat(h))) != 0;
  return h;
}
INLINE s8 keep(CacheQ8, float v, u16 &scale, bool &lost) {
  const float top = warpMax(absOf(v));
  const bool finite = ballot(isFinite(v)) == 0xffffffffu;
  u16 h = floatToHalf(divide(top, 127.0f));
  if (halfToFloat(h) * 127.5f < top) h++; // float16 is coarse near 0: round up, do not clip
  const bool large = finite && !isFinite(halfToFloat(h));
  if (!finite || large) h = 0x7fff; // only the scale says so: it is NaN
  lost |= large;
  scale = h;
  const float by = halfToFloat(h);
  return by > 0 ? s8(minOf(127, maxOf(-127, roundToInt(v * divide(1.0f, by))))) : s8(0);
}

// bitsOf is the bits of a magnitude, which order magnitudes; those of NaN are the largest.
INLINE int bitsOf(float v) { return int(asBits(v) & 0x7fffffffu); }

// scaleOfHead is the scale in an F8_E4M3 cache of a head whose largest magnitude has these bits:
// 256 units. The unit is the smallest power of two, from 2^-32 on, with which the largest magnitude
// is at most 448 units.
INLINE u16 scaleOfHead(int largest, bool &lost) {
  // 448 has the mantissa 0x600000.
  const int exponent = maxOf(int((u32(largest) + 0x1fffffu) >> 23) - 8, 127 - 32);
  if (exponent > 127 + 7) {
    lost |= largest < 0x7f800000;
    return 0x7fff; // only the scale says so: it is NaN
  }
  return floatToHalf(asFloat(u32(exponent + 8) << 23));
}
INLINE u8 keep(CacheF8, float v, u16 &scale, bool &) {
  const float by = halfToFloat(scale);
  if (!(by > 0)) return 0;
  v = v * divide(256.0f, by);
  const u32 bits = asBits(v), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
  const u32 normal = (magnitude - (120u << 23) + 0x7ffffu + (magnitude >> 20 & 1)) >> 20;
  // The last bit of the sum is 2^-9.
  const u32 small = asBits(asFloat(magnitude) + 0x1p14f) - asBits(0x1p14f);
  return u8(sign | (magnitude < 121u << 23 ? small : normal));
}

// A Copy is what the cache keeps of a head, contiguous.
template <class C> struct Copy {
  alignas(16) u8 numbers[maxHeadDim * C::bytes];
  u16 scales[maxHeadDim / CacheQ8::shared]; // enough for all caches
};

// storeHead writes a key or a value to its slot if store is set, and to copy unless that is 0. It
// reports whether the cache cannot hold the head.
template <class C, int N>
INLINE bool storeHead(const Pool &p, const Slot &slot, bool key, int head, int dim, const float (&v)[N], int lane, bool store, Copy<C> *copy) {
  using Number = typename C::Number;
  u8 *numbers = p.base + (key ? keyAt<C>(p, slot, head) : valueAt<C>(p, slot, head));
  u8 *scales = p.base + (key ? keyScaleAt<C>(p, slot, head) : valueScaleAt<C>(p, slot, head));
  const int e = chunkLength<C>(dim), apart = chunkApart<C>(p), scaleApart = key ? scalesApart(p) : 2;
  bool lost = false;
  u16 scale = 0;
  if constexpr (C::shared == wholeHead) {
    int largest = 0;
    UNROLL for (int j = 0; j < N; j++) largest = maxOf(largest, bitsOf(v[j]));
    scale = scaleOfHead(warpMax(largest), lost);
  }
  UNROLL for (int j = 0; j < N; j++) {
    if (32 * j >= dim) break;
    const int i = 32 * j + lane;
    const Number x = keep(C{}, v[j], scale, lost);
    const s64 at = key ? s64(i / e) * apart + i % e * C::bytes : s64(i) * C::bytes;
    if (store && i < dim) *reinterpret_cast<Number *>(numbers + at) = x;
    if (copy && i < dim) *reinterpret_cast<Number *>(copy->numbers + i * C::bytes) = x;
    if (C::shared && scaleOf<C>(32 * j) == j && lane == 0) {
      if (store) *reinterpret_cast<u16 *>(scales + s64(j) * scaleApart) = scale;
      if (copy) copy->scales[j] = scale;
    }
  }
  return lost;
}
