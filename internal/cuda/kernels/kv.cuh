// Where keys and values of the tokens so far lie: pages of a pool, found through a
// table for each sequence.
#pragma once
#include "device.cuh"

// A Place is where a token of the step stands: its position in its sequence, and what
// is added to the page of a position of that sequence for its place in Table.pages.
struct alignas(8) Place {
  s32 position; // -1: there is no such token
  s32 shift;
};

// A Table says which pages of the pool the tokens of a step see. Nothing of it changes
// while kernels run: it may be read before waitForPrevious.
struct Table {
  const s32 *pages;
  const Place *places; // [T] and, up to the size the grid is made for, those of no token
};

// A Pool is the pages of one state. A page holds, in this order and with nothing
// in between,
//
//   keys         [kvHeads][dim/E][pageTokens][E]
//   values       [kvHeads][pageTokens][dim]
//   key scales   [kvHeads][dim/S][pageTokens]  float16
//   value scales [kvHeads][pageTokens][dim/S]  float16
//
// E values of a key are 16 bytes, where dim is a multiple of as many, else E is 1:
// lanes of which each has a key then read neighbouring memory. Caches of bytes alone
// have scales, which S numbers along a head share. They come last so that keys and
// values begin at multiples of 16 bytes whatever pageTokens is.
struct Pool {
  u8 *base;
  s64 apart; // from a page to the next, a multiple of 256
  s32 pageTokens;
  s32 kvHeads;
  s32 dim; // of a head: 1 to 256; a multiple of 32 where the cache is Q8_0, of 16 where it is F8_E4M3
  s32 pad;
};

constexpr int maxHeadDim = 256;
constexpr int wholeHead = 1 << 30; // more values than a head has

// What a cache keeps: bytes of a value, values in 16 bytes, and values that share a
// scale, 0 where there are no scales.
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
// A number of E4M3 is 256 times the float16 that has its sign, exponent and mantissa. The
// scale is that of the float16: a power of two from 2^-24 to 2^15.
struct CacheF8 {
  using Number = u8;
  static constexpr int bytes = 1, chunk = 16, shared = wholeHead;
};

// scalesOf is how many scales dim values of a head have, and scaleOf which one value i has.
template <class C> INLINE constexpr int scalesOf(int dim) {
  if constexpr (C::shared == 0) return 0;
  else return C::shared == wholeHead ? 1 : dim / C::shared;
}
template <class C> INLINE constexpr int scaleOf(int i) {
  if constexpr (C::shared == 0) return 0;
  else return i / C::shared;
}

// A Slot is the place of one position, for all heads.
struct Slot {
  s64 page; // where its page begins, in bytes from the pool's base
  int at;   // in the page
};

INLINE Slot slotOf(const Pool &p, const Table &t, int shift, int position) {
  const int page = position / p.pageTokens;
  return Slot{t.pages[shift + page] * p.apart, position - page * p.pageTokens};
}

// chunkLength is E for heads of that length.
template <class C> INLINE int chunkLength(int headDim) { return headDim % C::chunk == 0 ? C::chunk : 1; }

// The following are bytes from the pool's base.

// keyAt is where chunk 0 of a key begins, and chunkApart from there to the next.
template <class C> INLINE s64 keyAt(const Pool &p, const Slot &s, int head) {
  const int e = chunkLength<C>(p.dim);
  return s.page + (s64(head) * p.dim * p.pageTokens + s.at * e) * C::bytes;
}
template <class C> INLINE int chunkApart(const Pool &p) { return p.pageTokens * chunkLength<C>(p.dim) * C::bytes; }

template <class C> INLINE s64 valueAt(const Pool &p, const Slot &s, int head) {
  return s.page + ((s64(p.kvHeads) + head) * p.pageTokens + s.at) * p.dim * C::bytes;
}

// Scales of a key are scalesApart from each other, those of a value side by side.
template <class C> INLINE s64 keyScaleAt(const Pool &p, const Slot &s, int head) {
  const s64 blocks = scalesOf<C>(p.dim);
  return s.page + 2 * s64(p.kvHeads) * p.dim * p.pageTokens + (head * blocks * p.pageTokens + s.at) * 2;
}
INLINE int scalesApart(const Pool &p) { return p.pageTokens * 2; }
template <class C> INLINE s64 valueScaleAt(const Pool &p, const Slot &s, int head) {
  const s64 blocks = scalesOf<C>(p.dim);
  return s.page + 2 * s64(p.kvHeads) * p.dim * p.pageTokens + ((s64(p.kvHeads) + head) * p.pageTokens + s.at) * blocks * 2;
}
