// hopper.cuh on the host. Products and copies are done when they begin, so kernels that wait too
// little are not found; sums are those of mma.cuh. There are no products of float8.
#pragma once
#include "matrix.cuh"

// A barrier counts the arrivals and bytes that its phase still needs.
struct HostBarrier {
  u8 all, left;
  u16 phase;
  s32 bytes;
  void change(int arrivals, int more) {
    left -= arrivals, bytes += more;
    if (left == 0 && bytes == 0) left = all, phase++;
  }
};
INLINE HostBarrier &barrierAt(u32 barrier) { return sharedOf<HostBarrier>(barrier); }
INLINE void makeBarrier(u32 barrier, int arrivals) { barrierAt(barrier) = HostBarrier{u8(arrivals), u8(arrivals), 0, 0}; }
INLINE void showBarriers() {}
INLINE void arrive(u32 barrier) { barrierAt(barrier).change(1, 0); }
INLINE void arriveWith(u32 barrier, int bytes) { barrierAt(barrier).change(1, bytes); }
INLINE void arriveAfterCopies(u32 barrier) { arrive(barrier); }
INLINE void awaitPhase(u32 barrier, u32 parity) {
  for (bool again = false; barrierAt(barrier).phase % 2 == parity; again = true) machine::pause(again);
}
INLINE void copyBulk(u32 to, const void *from, int bytes, u32 barrier) {
  memcpy(&sharedOf<u8>(to), from, bytes);
  barrierAt(barrier).change(0, -bytes);
}
// isOver reports whether a phase has ended.
INLINE bool isOver(u32 barrier, u32 parity) { return barrierAt(barrier).phase % 2 != parity; }
INLINE int uniform(int v) { return v; }
INLINE bool elected() { return tidX() % 32 == 0; }
template <int N> INLINE void syncSome(int barrier) { machine::wait(machine::here->namedBarriers[barrier], N); }
template <int N, int BARRIER> INLINE void syncSome() { syncSome<N>(BARRIER); }

template <int N> INLINE void fewerRegisters() {}
template <int N> INLINE void moreRegisters() {}
INLINE void beginProducts() {}
INLINE void endProducts() {}
template <int LEFT> INLINE void awaitProducts() {}
INLINE void showCopies() {}
template <int N> INLINE void hold(float (&)[N]) {}
INLINE float oneOf(bool first, float a, float b) { return first ? a : b; }
INLINE float loadIf(bool there, const float *p) { return there ? *p : 0; }
INLINE uint4 loadShared(const uint4 *p) { return *p; }

// The lower half of a descriptor is an address in units of 16 bytes, the upper half one distance or
// two, in units of 16 bytes.
INLINE u64 descriptorOf(u32 at, int apart) { return u64(at >> 4) | u64(apart) << 32; }
INLINE u64 piecesOfRows(u32 at, int apart) { return descriptorOf(at, apart); }
INLINE u64 columnsOfTiles(u32 at, int panelBytes) { return descriptorOf(at, panelBytes); }
INLINE u64 columnsOfPieces(u32 at, int rowsApart, int columnsApart) { return descriptorOf(at, rowsApart >> 4 | columnsApart >> 4 << 16); }
INLINE u64 tileOfRows(u32 at) { return descriptorOf(at, 0); }
INLINE u64 later(u64 of, int bytes) { return of + (bytes >> 4); }

// pieceNumber returns number k of a row of what piecesOfRows describes, tileNumber number k of a
// column of what columnsOfTiles describes, and columnNumber that of what columnsOfPieces describes.
INLINE float pieceNumber(u64 of, int row, int k) { return halfToFloat(sharedOf<u16>(u32(of) * 16 + k / 8 * u32(of >> 32) + row * 16 + k % 8 * 2)); }
INLINE float tileNumber(u64 of, int column, int k) {
  return halfToFloat(sharedOf<u16>(u32(of) * 16 + column / 64 * u32(of >> 32) + k * 128 + (column % 64 / 8 ^ k % 8) * 16 + column % 8 * 2));
}

INLINE float columnNumber(u64 of, int column, int k) {
  return halfToFloat(sharedOf<u16>(u32(of) * 16 + column / 8 * u32(of >> 48) * 16 + k / 8 * u32(of >> 32 & 0xffff) * 16 + k % 8 * 16 + column % 8 * 2));
}

// multiplyStepOf adds the products of a step of 16 to c, the part of the thread's warp.
template <int N, class A, class X> INLINE void multiplyStepOf(float (&c)[N / 2], bool add, const A &a, const X &x) {
  const int g = (tidX() & 31) / 4, t = tidX() & 3;
  for (int n = 0; n < N / 8; n++) {
    for (int i = 0; i < 4; i++) {
      double sum = add ? c[4 * n + i] : 0;
      for (int k = 0; k < 16; k++) sum += double(a(g + i / 2 * 8, k)) * x(8 * n + 2 * t + i % 2, k);
      c[4 * n + i] = float(sum);
    }
  }
}
template <int N> INLINE void multiplyColumns(float (&c)[N / 2], uint4 a, u64 x, bool add) {
  const u32 mine[4] = {a.x, a.y, a.z, a.w};
  const auto all = machine::exchange(mine, 4);
  multiplyStepOf<N>(c, add, [&](int row, int k) { return halfToFloat(u16(all[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2] >> (k % 2 * 16))); },
                    [&](int column, int k) { return tileNumber(x, column, k); });
}
template <int N> INLINE void multiplyPieces(float (&c)[N / 2], u64 a, u64 x, bool add) {
  const int first = tidX() / 32 % 4 * 16;
  multiplyStepOf<N>(c, add, [&](int row, int k) { return pieceNumber(a, first + row, k); }, [&](int column, int k) { return pieceNumber(x, column, k); });
}
template <bool COLUMNS, bool ADD> INLINE void multiplyShared(float (&c)[16], u64 a, u64 x) {
  const int first = tidX() / 32 % 4 * 16;
  if (COLUMNS) multiplyStepOf<32>(c, ADD, [&](int row, int k) { return columnNumber(a, first + row, k); }, [&](int column, int k) { return columnNumber(x, column, k); });
  else multiplyPieces<32>(c, a, x, ADD);
}

enum OperandType { InF16, InBF16, InFloat8 };

// multiplyRows adds the products of a step of 16 rows of the warp, which its lanes have, and N rows of
// what tileOfRows describes.
template <int N, OperandType T> INLINE void multiplyRows(float (&c)[N / 2], uint4 a, u64 x) {
  static_assert(T != InFloat8, "the host has no products of float8");
  const u32 mine[4] = {a.x, a.y, a.z, a.w};
  const auto all = machine::exchange(mine, 4);
  const auto number = [](u32 v) { return T == InBF16 ? bfloatToFloat(u16(v)) : halfToFloat(u16(v)); };
  multiplyStepOf<N>(c, true, [&](int row, int k) { return number(all[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2] >> (k % 2 * 16)); },
                    [&](int row, int k) {
                      const u32 at = u32(x) * 16 + row * 128 + k * 2;
                      return number(sharedOf<u16>(at ^ (at >> 7 & 7) << 4));
                    });
}

template <int DIM> INLINE int sizeOfCluster() { return machine::cluster[DIM]; }
template <int DIM> INLINE int rankInCluster() { return machine::here->index[DIM] % machine::cluster[DIM]; }
INLINE void comeToCluster() { machine::comeToCluster(); }
INLINE void awaitCluster() { machine::awaitCluster(); }
INLINE void meetCluster() {
  comeToCluster();
  awaitCluster();
}
INLINE u32 placeIn(int block, u32 address) { return machine::placeIn(block, address); }
INLINE void arriveIn(int block, u32 barrier) { arrive(placeIn(block, barrier)); }
INLINE void storeIn(u32 at, float v) { sharedOf<float>(at) = v; }
INLINE void storeIn(u32 at, float4 v, u32 barrier) {
  sharedOf<float4>(at) = v;
  barrierAt(barrier).change(0, -16);
}
INLINE void copyBulkTo(u32 blocks, u32 to, const void *from, int bytes, u32 barrier) {
  for (int i = 0; i < machine::blocksOfCluster; i++) {
    if (blocks >> i & 1) copyBulk(placeIn(i, to), from, bytes, placeIn(i, barrier));
  }
}
