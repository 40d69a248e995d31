// Bands: keys or values of consecutive positions in shared memory, as f16.
#pragma once
#include "head.cuh"
#include "matrix.cuh"

// A Band is a matrix of N positions and a head's numbers, see matrix.cuh. Beyond the head,
// up to a multiple of 16, its numbers are 0, and so are positions that are not seen: what
// their memory holds is never read.
template <int N> INLINE u32 bandAt(u32 band, int chunk, int position) { return band + (chunk * N + position) * 16; }

// scaled is four bytes times their scale, each rounded once, as two words.
INLINE uint2 scaled(u32 bytes, u16 scale) {
  const u32 by = u32(scale) | u32(scale) << 16, v = bytes ^ 0x80808080u;
  u32 low = __nvvm_prmt(v, 0x64646464u, 0x4140u), high = __nvvm_prmt(v, 0x64646464u, 0x4342u); // 1152 more
  asm("sub.rn.f16x2 %0, %0, %1;" : "+r"(low) : "r"(0x64806480u));
  asm("sub.rn.f16x2 %0, %0, %1;" : "+r"(high) : "r"(0x64806480u));
  asm("mul.rn.f16x2 %0, %0, %1;" : "+r"(low) : "r"(by));
  asm("mul.rn.f16x2 %0, %0, %1;" : "+r"(high) : "r"(by));
  return uint2{low, high};
}
INLINE uint4 scaled(uint2 bytes, u16 scale) {
  const uint2 low = scaled(bytes.x, scale), high = scaled(bytes.y, scale);
  return uint4{low.x, low.y, high.x, high.y};
}

// A Row is where the key or the value of a position is: numbers that stand in runs of
// together, a run apart bytes from the next, and their scales.
struct Row {
  const u8 *at, *scales;
  int together, apart, scalesApart;
};
template <class C> INLINE Row rowOf(const Pool &p, const Slot &s, bool key, int head) {
  if (key) return Row{p.base + keyAt<C>(p, s, head), p.base + keyScaleAt(p, s, head), chunkLength<C>(p.dim), chunkApart<C>(p), scalesApart(p)};
  return Row{p.base + valueAt<C>(p, s, head), p.base + valueScaleAt(p, s, head), p.dim, 0, 2};
}

// bringChunk brings 8 numbers of a row.
INLINE void bringChunk(CacheF16, u32 to, const Row &r, int chunk, int dim) {
  const int first = 8 * chunk;
  if (dim % 8 == 0) {
    const u8 *at = r.at + (r.together == 8 ? s64(chunk) * r.apart : 16 * chunk);
    copyChunk(to, first < dim ? at : r.at, first < dim);
    return;
  }
  u32 v[4] = {};
  UNROLL for (int i = 0; i < 8; i++) {
    if (first + i >= dim) break;
    const s64 at = r.together == 1 ? s64(first + i) * r.apart : 2 * (first + i);
    v[i / 2] |= u32(*reinterpret_cast<const u16 *>(r.at + at)) << i % 2 * 16;
  }
  storeChunk(to, uint4{v[0], v[1], v[2], v[3]});
}
INLINE void bringChunk(CacheQ8, u32 to, const Row &r, int chunk, int) {
  const u8 *at = r.at + (r.together == 16 ? s64(chunk / 2) * r.apart + chunk % 2 * 8 : 8 * chunk);
  storeChunk(to, scaled(*reinterpret_cast<const uint2 *>(at), *reinterpret_cast<const u16 *>(r.scales + s64(chunk / 4) * r.scalesApart)));
}

// copied is chunk c of a head's copy.
INLINE uint4 copied(const Copy<CacheF16> &copy, int c, int dim) {
  if (dim % 8 == 0) return 8 * c < dim ? *reinterpret_cast<const uint4 *>(copy.numbers + 16 * c) : uint4{};
  u32 v[4] = {};
  UNROLL for (int i = 0; i < 8; i++) {
    if (8 * c + i < dim) v[i / 2] |= u32(*reinterpret_cast<const u16 *>(copy.numbers + 16 * c + 2 * i)) << i % 2 * 16;
  }
  return uint4{v[0], v[1], v[2], v[3]};
}
INLINE uint4 copied(const Copy<CacheQ8> &copy, int c, int) {
  return scaled(*reinterpret_cast<const uint2 *>(copy.numbers + 8 * c), copy.scales[c / 4]);
}

// sharedBytes is the shared memory that a launch gives a kernel, and sharedBands where it
// begins.
INLINE u8 *sharedBytes() {
  extern __shared__ uint4 bands[];
  return reinterpret_cast<u8 *>(bands);
}
INLINE u32 sharedBands() { return sharedAt(sharedBytes()); }

// A Source is where the keys or the values of a sequence's head come from.
struct Source {
  const Pool &pool;
  const Table &table;
  int shift, head;
};

// Sixteen are bytes of a row on their way, a unit of it, and what makes chunks of them.
template <class C> struct Sixteen;
template <> struct Sixteen<CacheF16> {
  static constexpr int chunks = 1;
  METHOD void load(const Row &, int, bool) {}
  template <int N> METHOD void store(u32 band, int at, const Row &r, int unit, bool seen) {
    copyChunk(bandAt<N>(band, unit, at), r.at + (r.together == 8 ? s64(unit) * r.apart : 16 * unit), seen);
  }
};
template <> struct Sixteen<CacheQ8> {
  static constexpr int chunks = 2;
  uint4 bytes;
  u16 scale;
  METHOD void load(const Row &r, int unit, bool seen) {
    bytes = *reinterpret_cast<const uint4 *>(r.at + (r.together == 16 ? s64(unit) * r.apart : 16 * unit));
    scale = *reinterpret_cast<const u16 *>(r.scales + s64(unit / 2) * r.scalesApart);
    if (!seen) bytes = uint4{}, scale = 0;
  }
  template <int N> METHOD void store(u32 band, int at, const Row &, int unit, bool) {
    storeChunk(bandAt<N>(band, 2 * unit, at), scaled(uint2{bytes.x, bytes.y}, scale));
    storeChunk(bandAt<N>(band, 2 * unit + 1, at), scaled(uint2{bytes.z, bytes.w}, scale));
  }
};

// Mine is where one position is, which a thread finds for all: its page, or 0 where it is
// not seen, and its place there.
struct Mine {
  int page, at;
};
template <int N> INLINE Mine mineOf(const Source &s, int begin, int lo, int hi) {
  const int position = begin + tidX() % N, page = position / s.pool.pageTokens;
  const bool seen = position >= lo && position < hi;
  return Mine{seen ? s.table.pages[s.shift + page] : 0, position - page * s.pool.pageTokens};
}

// bring brings positions begin to begin+N-1 of heads of D numbers, of which lo to hi-1 are
// seen and the others are 0, all but skip, which somebody else writes. Threads read what lies side by side: of keys a unit of 8 positions or
// more, of values 4 units of a position.
template <class C, int D, int N, int THREADS> INLINE void bring(u32 band, const Source &s, const Mine &found, bool key, int begin, int lo, int hi, int skip) {
  constexpr int units = D / 8 / Sixteen<C>::chunks, each = THREADS / N; // threads of a position
  const int lane = tidX() % 32, mine = tidX() % N;
  const auto sees = [&](int at) ALWAYS { return begin + at >= lo && begin + at < hi; };
  Pool pool = s.pool;
  pool.dim = D;
  if (key) {
    const Row r = rowOf<C>(pool, Slot{found.page * pool.apart, found.at}, true, s.head);
    Sixteen<C> unit[units / each];
    UNROLL for (int i = 0; i < units / each; i++) unit[i].load(r, tidX() / N + each * i, sees(mine));
    if (begin + mine == skip) return;
    UNROLL for (int i = 0; i < units / each; i++) unit[i].template store<N>(band, mine, r, tidX() / N + each * i, sees(mine));
    return;
  }
  UNROLL for (int j = 0; j < 4 / each; j++) {
    const int from = 8 * (tidX() / N * (4 / each) + j) + lane % 8, at = mine - lane + from;
    const Slot slot{int(shuffleFrom(u32(found.page), from)) * pool.apart, int(shuffleFrom(u32(found.at), from))};
    const Row r = rowOf<C>(pool, slot, false, s.head);
    Sixteen<C> unit[units / 4];
    UNROLL for (int i = 0; i < units / 4; i++) unit[i].load(r, lane / 8 + 4 * i, sees(at));
    if (begin + at == skip) continue;
    UNROLL for (int i = 0; i < units / 4; i++) unit[i].template store<N>(band, at, r, lane / 8 + 4 * i, sees(at));
  }
}

// bringAny does it for heads of any length, with a thread for each position.
template <class C, int N, int THREADS> INLINE void bringAny(u32 band, const Source &s, bool key, int begin, int lo, int hi, int skip) {
  const int at = tidX() % N, position = begin + at, dim = s.pool.dim, chunks = (dim + 15) / 16 * 2;
  if (position == skip) return;
  if (position < lo || position >= hi) {
    for (int c = tidX() / N; c < chunks; c += THREADS / N) storeChunk(bandAt<N>(band, c, at), uint4{});
    return;
  }
  const Row r = rowOf<C>(s.pool, slotOf(s.pool, s.table, s.shift, position), key, s.head);
  for (int c = tidX() / N; c < chunks; c += THREADS / N) bringChunk(C{}, bandAt<N>(band, c, at), r, c, dim);
}
