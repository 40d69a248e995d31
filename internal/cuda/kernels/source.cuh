// Keys and values in float16, loaded from the pages of the cache or from copies.
#pragma once
#include "half.cuh"
#include "head.cuh"
#include "matrix.cuh"

// A Source is the origin of the keys or values of a sequence's head.
struct Source {
  const Pool &pool;
  const Table &table;
  int shift, head;
};

// A Row is the place of a position's key or value, and of its scales. together numbers are
// adjacent, and apart is the distance in bytes from such a group to the next.
struct Row {
  const u8 *at, *scales;
  int together, apart, scalesApart;
};
template <class C> INLINE Row rowOf(const Pool &p, const Slot &s, bool key, int head) {
  if (key) return Row{p.base + keyAt<C>(p, s, head), p.base + keyScaleAt<C>(p, s, head), chunkLength<C>(p.dim), chunkApart<C>(p), scalesApart(p)};
  return Row{p.base + valueAt<C>(p, s, head), p.base + valueScaleAt<C>(p, s, head), p.dim, 0, 2};
}
template <class C> INLINE Row rowOf(const Copy<C> &c, int dim) { return Row{c.numbers, reinterpret_cast<const u8 *>(c.scales), dim, 0, 2}; }

// scaled returns the numbers of a byte cache's codes, times their scale.
INLINE uint2 scaled(CacheQ8, u32 codes, u16 scale) { return scaled(codes, scale); }
INLINE uint2 scaled(CacheF8, u32 codes, u16 scale) {
  const u32 by = u32(scale) | u32(scale) << 16;
  const auto halves = [](u32 upper) ALWAYS { return (upper >> 1 & 0x3f803f80u) | (upper & 0x80008000u); };
  return uint2{multiplyHalves(halves(bytesOf(codes, 0, 0x1404)), by), multiplyHalves(halves(bytesOf(codes, 0, 0x3424)), by)};
}
template <class C> INLINE uint4 scaled(C, uint2 codes, u16 scale) {
  const uint2 low = scaled(C{}, codes.x, scale), high = scaled(C{}, codes.y, scale);
  return uint4{low.x, low.y, high.x, high.y};
}

// numbersOf sets v to N numbers of a row from first on, a multiple of N, two to a word; those from
// dim on are 0. Four may come from keys in pages; more only from values or copies.
template <int N> INLINE void numbersOf(CacheF16, u32 (&v)[N / 2], const Row &r, int first, int dim) {
  UNROLL for (int i = 0; i < N / 2; i++) v[i] = 0;
  if (first >= dim) return;
  if (r.together % N == 0) {
    const u8 *at = r.at + (r.apart ? s64(first / r.together) * r.apart + first % r.together * 2 : first * 2);
    if constexpr (N == 4) {
      const uint2 w = *reinterpret_cast<const uint2 *>(at);
      v[0] = w.x, v[1] = w.y;
    } else {
      const uint4 w = *reinterpret_cast<const uint4 *>(at);
      v[0] = w.x, v[1] = w.y, v[2] = w.z, v[3] = w.w;
    }
    return;
  }
  UNROLL for (int i = 0; i < N; i++) {
    if (first + i >= dim) break;
    const u8 *at = r.at + (r.together == 1 ? s64(first + i) * r.apart : 2 * (first + i));
    v[i / 2] |= u32(*reinterpret_cast<const u16 *>(at)) << i % 2 * 16;
  }
}
template <class C, int N> INLINE void numbersOfBytes(u32 (&v)[N / 2], const Row &r, int first, int dim) {
  UNROLL for (int i = 0; i < N / 2; i++) v[i] = 0;
  if (first >= dim) return;
  const u8 *at = r.at + (r.apart ? s64(first / r.together) * r.apart + first % r.together : first);
  const u16 scale = *reinterpret_cast<const u16 *>(r.scales + s64(scaleOf<C>(first)) * r.scalesApart);
  UNROLL for (int i = 0; i < N / 4; i++) {
    const uint2 w = scaled(C{}, reinterpret_cast<const u32 *>(at)[i], scale);
    v[2 * i] = w.x, v[2 * i + 1] = w.y;
  }
}
template <int N> INLINE void numbersOf(CacheQ8, u32 (&v)[N / 2], const Row &r, int first, int dim) { numbersOfBytes<CacheQ8, N>(v, r, first, dim); }
template <int N> INLINE void numbersOf(CacheF8, u32 (&v)[N / 2], const Row &r, int first, int dim) { numbersOfBytes<CacheF8, N>(v, r, first, dim); }
