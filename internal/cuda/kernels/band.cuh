// Bands: keys or values of consecutive positions in shared memory, as f16.
#pragma once
#include "source.cuh"

// A band is a matrix of N positions and the elements of a head, see matrix.cuh. Positions that are
// not visible are 0, and their memory is never read.
template <int N> constexpr int bandApart = 16 * N + 64; // from a chunk to the next, in bytes
template <int N> INLINE u32 bandAt(u32 band, int chunk, int position) { return band + chunk * bandApart<N> + position * 16; }

// sharedBytes is the dynamic shared memory of the kernel.
INLINE u8 *sharedBytes() {
  extern __shared__ uint4 bands[];
  return reinterpret_cast<u8 *>(bands);
}

// A Sixteen is a unit of a row in flight, 16 bytes, and converts it to chunks.
template <class C> struct Sixteen {
  static constexpr int chunks = 2;
  uint4 bytes;
  u16 scale;
  METHOD void load(const Row &r, int unit, bool seen) {
    bytes = *reinterpret_cast<const uint4 *>(r.at + (r.together == 16 ? s64(unit) * r.apart : 16 * unit));
    scale = *reinterpret_cast<const u16 *>(r.scales + s64(scaleOf<C>(16 * unit)) * r.scalesApart);
    if (!seen) bytes = uint4{}, scale = 0;
  }
  template <int N> METHOD void store(u32 band, int at, const Row &, int unit, bool) {
    storeChunk(bandAt<N>(band, 2 * unit, at), scaled(C{}, uint2{bytes.x, bytes.y}, scale));
    storeChunk(bandAt<N>(band, 2 * unit + 1, at), scaled(C{}, uint2{bytes.z, bytes.w}, scale));
  }
};
template <> struct Sixteen<CacheF16> {
  static constexpr int chunks = 1;
  METHOD void load(const Row &, int, bool) {}
  template <int N> METHOD void store(u32 band, int at, const Row &r, int unit, bool seen) {
    copyChunk(bandAt<N>(band, unit, at), r.at + (r.together == 8 ? s64(unit) * r.apart : 16 * unit), seen);
  }
};

// A Mine locates one position, which a thread looks up for all threads: its page, or 0 if it is not
// visible, and its index in the page.
struct Mine {
  int page, at;
};
template <int N> INLINE Mine mineOf(const Source &s, int begin, int lo, int hi) {
  const int position = begin + tidX() % N, page = position / s.pool.pageTokens;
  const bool seen = position >= lo && position < hi;
  return Mine{seen ? s.table.pages[s.shift + page] : 0, position - page * s.pool.pageTokens};
}

// bring copies positions begin to begin+N-1 of heads of D elements to shared memory. Positions lo
// to hi-1 are visible; the others become 0. Threads read adjacent memory: of keys, a unit of 8
// positions or more; of values, 4 units of a position.
template <class C, int D, int N, int THREADS> INLINE void bring(u32 band, const Source &s, const Mine &found, bool key, int begin, int lo, int hi) {
  constexpr int units = D / 8 / Sixteen<C>::chunks, each = THREADS / N; // threads of a position
  const int lane = tidX() % 32, mine = tidX() % N;
  const auto sees = [&](int at) ALWAYS { return begin + at >= lo && begin + at < hi; };
  Pool pool = s.pool;
  pool.dim = D;
  if (key) {
    const Row r = rowOf<C>(pool, Slot{found.page * pool.apart, found.at}, true, s.head);
    Sixteen<C> unit[units / each];
    UNROLL for (int i = 0; i < units / each; i++) unit[i].load(r, tidX() / N + each * i, sees(mine));
    UNROLL for (int i = 0; i < units / each; i++) unit[i].template store<N>(band, mine, r, tidX() / N + each * i, sees(mine));
    return;
  }
  UNROLL for (int j = 0; j < 4 / each; j++) {
    const int from = 8 * (tidX() / N * (4 / each) + j) + lane % 8, at = mine - lane + from;
    const Slot slot{int(shuffleFrom(u32(found.page), from)) * pool.apart, int(shuffleFrom(u32(found.at), from))};
    const Row r = rowOf<C>(pool, slot, false, s.head);
    Sixteen<C> unit[units / 4];
    UNROLL for (int i = 0; i < units / 4; i++) unit[i].load(r, lane / 8 + 4 * i, sees(at));
    UNROLL for (int i = 0; i < units / 4; i++) unit[i].template store<N>(band, at, r, lane / 8 + 4 * i, sees(at));
  }
}
