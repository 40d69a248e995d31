// The layout of the KV cache: pages of a pool, which each sequence finds through a page table.
#pragma once
#include "device.cuh"

// A Place is the place of a token of the step: its position in its sequence, and the number to add
// to a page index of that sequence to get an index into Table.pages.
struct alignas(8) Place {
  s32 position; // -1: no token
  s32 shift;
};

// A Table gives the pages of the pool that the tokens of a step see. It does not change while
// kernels run, so a kernel may read it before waitForPrevious.
struct Table {
  const s32 *pages;
  // [T], padded without tokens to the size that the grid is made for
  const Place *places;
};

// A Pool is the pages of one state. A page holds, in this order and without gaps,
//
//   keys         [kvHeads][dim/E][pageTokens][E]
//   values       [kvHeads][pageTokens][dim]
//   key scales   [kvHeads][dim/S][pageTokens]  float16
//   value scales [kvHeads][pageTokens][dim/S]  float16
//
// E is the number of key values in 16 bytes if that divides dim, or else 1. Lanes with one key each
// then read adjacent memory. Only byte caches have scales: S adjacent values of a head share one.
// The scales come last, so that keys and values begin at multiples of 16 bytes for any pageTokens.
struct Pool {
  u8 *base;
  s64 apart; // bytes from a page to the next, a multiple of 256
  s32 pageTokens;
  s32 kvHeads;
  // of a head: 1 to 256; a multiple of 32 in a Q8_0 cache, of 16 in an F8_E4M3 cache
  s32 dim;
  s32 pad;
};

constexpr int maxHeadDim = 256;
constexpr int wholeHead = 1 << 30; // S if a head has a single scale

// The cache formats: the bytes of a value, the values in 16 bytes, and the values that share a
// scale, 0 if there are no scales.
struct CacheF32 {
  using Number = float;
  static constexpr int bytes = 4, chunk = 4, shared = 0;
};
struct CacheF16 {
  using Number = u16;
  static constexpr int bytes = 2, chunk = 8, shared = 0;
};
struct CacheQ8 {
  using Number = s8;
  static constexpr int bytes = 1, chunk = 16, shared = 32;
};
// An E4M3 number is 256 times the float16 with the same sign, exponent and mantissa. The scale is
// that of the float16: a power of two from 2^-24 to 2^15.
struct CacheF8 {
  using Number = u8;
  static constexpr int bytes = 1, chunk = 16, shared = wholeHead;
};

// scalesOf returns the number of scales of dim values of a head, and scaleOf the index of the scale
// of value i.
template <class C> INLINE constexpr int scalesOf(int dim) {
  if constexpr (C::shared == 0) return 0;
  else return C::shared == wholeHead ? 1 : dim / C::shared;
}
template <class C> INLINE constexpr int scaleOf(int i) {
  if constexpr (C::shared == 0) return 0;
  else return i / C::shared;
}

// A Slot is the place of one position in the pool, for all heads.
struct Slot {
  s64 page; // where the page begins, in bytes from the pool's base
  int at;   // index of the position in the page
};

INLINE Slot slotOf(const Pool &p, const Table &t, int shift, int position) {
  const int page = position / p.pageTokens;
  return Slot{t.pages[shift + page] * p.apart, position - page * p.pageTokens};
}

// chunkLength returns E for heads of headDim values.
template <class C> INLINE int chunkLength(int headDim) { return headDim % C::chunk == 0 ? C::chunk : 1; }

// The following functions return bytes from the pool's base.

// keyAt returns the address of chunk 0 of a key, and chunkApart the distance between chunks.
template <class C> INLINE s64 keyAt(const Pool &p, const Slot &s, int head) {
  const int e = chunkLength<C>(p.dim);
  return s.page + (s64(head) * p.dim * p.pageTokens + s.at * e) * C::bytes;
}
template <class C> INLINE int chunkApart(const Pool &p) { return p.pageTokens * chunkLength<C>(p.dim) * C::bytes; }

template <class C> INLINE s64 valueAt(const Pool &p, const Slot &s, int head) {
  return s.page + ((s64(p.kvHeads) + head) * p.pageTokens + s.at) * p.dim * C::bytes;
}

// The scales of a key are scalesApart bytes apart; those of a value are adjacent.
template <class C> INLINE s64 keyScaleAt(const Pool &p, const Slot &s, int head) {
  const s64 blocks = scalesOf<C>(p.dim);
  return s.page + 2 * s64(p.kvHeads) * p.dim * p.pageTokens + (head * blocks * p.pageTokens + s.at) * 2;
}
INLINE int scalesApart(const Pool &p) { return p.pageTokens * 2; }
template <class C> INLINE s64 valueScaleAt(const Pool &p, const Slot &s, int head) {
  const s64 blocks = scalesOf<C>(p.dim);
  return s.page + 2 * s64(p.kvHeads) * p.dim * p.pageTokens + ((s64(p.kvHeads) + head) * p.pageTokens + s.at) * blocks * 2;
}
