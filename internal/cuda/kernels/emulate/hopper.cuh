// hopper.cuh on the host, as far as attention and latent attention of prompts need it. Products and
// copies are done when they begin, so kernels that wait too little are not found; sums are those of
// mma.cuh.
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
INLINE int uniform(int v) { return v; }
INLINE bool elected() { return tidX() % 32 == 0; }
template <int N> INLINE void syncSome(int barrier) { machine::wait(machine::namedBarriers[barrier], N); }

template <int N> INLINE void fewerRegisters() {}
template <int N> INLINE void moreRegisters() {}
INLINE void beginProducts() {}
INLINE void endProducts() {}
template <int LEFT> INLINE void awaitProducts() {}
INLINE void showCopies() {}
template <int N> INLINE void hold(float (&)[N]) {}
INLINE float oneOf(bool first, float a, float b) { return first ? a : b; }

// The lower half of a descriptor is an address in units of 16 bytes, the upper half one distance or
// two, in units of 16 bytes.
INLINE u64 descriptorOf(u32 at, int apart) { return u64(at >> 4) | u64(apart) << 32; }
INLINE u64 piecesOfRows(u32 at, int apart) { return descriptorOf(at, apart); }
INLINE u64 columnsOfTiles(u32 at, int panelBytes) { return descriptorOf(at, panelBytes); }
INLINE u64 columnsOfPieces(u32 at, int rowsApart, int columnsApart) { return descriptorOf(at, rowsApart >> 4 | columnsApart >> 4 << 16); }
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
