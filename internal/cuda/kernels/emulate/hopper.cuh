// hopper.cuh on the host, as far as attention of prompts needs it. Products and copies are done when
// they begin, so kernels that wait too little are not found; sums have the order of mma.cuh.
#pragma once
#include "matrix.cuh"

// A barrier counts the arrivals that its phase still needs.
struct HostBarrier {
  u16 all, left;
  u32 phase;
};
INLINE void makeBarrier(u32 barrier, int arrivals) { sharedOf<HostBarrier>(barrier) = HostBarrier{u16(arrivals), u16(arrivals), 0}; }
INLINE void showBarriers() {}
INLINE void arrive(u32 barrier) {
  HostBarrier &b = sharedOf<HostBarrier>(barrier);
  if (--b.left == 0) b.left = b.all, b.phase++;
}
INLINE void arriveAfterCopies(u32 barrier) { arrive(barrier); }
INLINE void awaitPhase(u32 barrier, u32 parity) {
  for (bool again = false; sharedOf<HostBarrier>(barrier).phase % 2 == parity; again = true) machine::pause(again);
}
template <int N> INLINE void syncSome(int barrier) { machine::wait(machine::namedBarriers[barrier], N); }

template <int N> INLINE void fewerRegisters() {}
template <int N> INLINE void moreRegisters() {}
INLINE void beginProducts() {}
INLINE void endProducts() {}
template <int LEFT> INLINE void awaitProducts() {}
INLINE void showCopies() {}
template <int N> INLINE void hold(float (&)[N]) {}

// The lower half of a descriptor is an address in units of 16 bytes, the upper half a distance.
INLINE u64 descriptorOf(u32 at, int apart) { return u64(at >> 4) | u64(apart) << 32; }
INLINE u64 piecesOfRows(u32 at, int apart) { return descriptorOf(at, apart); }
INLINE u64 columnsOfTiles(u32 at, int panelBytes) { return descriptorOf(at, panelBytes); }
INLINE u64 later(u64 of, int bytes) { return of + (bytes >> 4); }

// pieceNumber returns number k of a row of what piecesOfRows describes, and tileNumber number k of a
// column of what columnsOfTiles describes.
INLINE float pieceNumber(u64 of, int row, int k) { return halfToFloat(sharedOf<u16>(u32(of) * 16 + k / 8 * u32(of >> 32) + row * 16 + k % 8 * 2)); }
INLINE float tileNumber(u64 of, int column, int k) {
  return halfToFloat(sharedOf<u16>(u32(of) * 16 + column / 64 * u32(of >> 32) + k * 128 + (column % 64 / 8 ^ k % 8) * 16 + column % 8 * 2));
}

// multiplyStepOf adds the products of a step of 16 to c, the part of the thread's warp.
template <int N, class A, class X> INLINE void multiplyStepOf(float (&c)[N / 2], bool add, const A &a, const X &x) {
  const int g = (tidX() & 31) / 4, t = tidX() & 3;
  for (int n = 0; n < N / 8; n++) {
    for (int i = 0; i < 4; i++) {
      float sum = add ? c[4 * n + i] : 0;
      for (int k = 0; k < 16; k++) sum = sum + a(g + i / 2 * 8, k) * x(8 * n + 2 * t + i % 2, k);
      c[4 * n + i] = sum;
    }
  }
}
template <int N> INLINE void multiplyColumns(float (&c)[N / 2], uint4 a, u64 x, bool add) {
  const u32 mine[4] = {a.x, a.y, a.z, a.w};
  const auto all = machine::exchange(mine, 4);
  multiplyStepOf<N>(c, add, [&](int row, int k) { return halfToFloat(u16(all[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2] >> (k % 2 * 16))); },
                    [&](int column, int k) { return tileNumber(x, column, k); });
}
// The order of the 16 numbers does not matter on a GPU. Here it is that of the kernels with mma.sync:
// see segment.cuh.
INLINE int numberOf(int k) { return k % 8 / 2 * 4 + k / 8 * 2 + k % 2; }
template <int N> INLINE void multiplyPieces(float (&c)[N / 2], u64 a, u64 x, bool add) {
  const int first = tidX() / 32 % 4 * 16;
  multiplyStepOf<N>(c, add, [&](int row, int k) { return pieceNumber(a, first + row, numberOf(k)); }, [&](int column, int k) { return pieceNumber(x, column, numberOf(k)); });
}
