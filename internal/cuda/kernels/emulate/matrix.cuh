// matrix.cuh on the host. Shared memory is in the first 4 GiB, since the program is not position
// independent; copies to it are immediate.
#pragma once
#include "mma.cuh"

INLINE u32 sharedAt(const void *p) { return u32(u64(p)); }
template <class T> INLINE T &sharedOf(u32 at) { return *reinterpret_cast<T *>(u64(at)); }

template <class Of> INLINE void loadFour(u32 (&m)[4], u32 at, const Of &of) {
  const auto all = machine::exchange(&at, 1);
  for (int i = 0; i < 4; i++) m[i] = of([&](int row, int col) { return u32(sharedOf<u16>(all[8 * i + row][0] + 2 * col)); });
}
INLINE void loadMatrices(u32 (&m)[4], u32 at) {
  const int g = (tidX() & 31) / 4, t = tidX() & 3;
  loadFour(m, at, [&](const auto &number) { return number(g, 2 * t) | number(g, 2 * t + 1) << 16; });
}
INLINE void loadTransposed(u32 (&m)[4], u32 at) {
  const int g = (tidX() & 31) / 4, t = tidX() & 3;
  loadFour(m, at, [&](const auto &number) { return number(2 * t, g) | number(2 * t + 1, g) << 16; });
}
INLINE u32 transposed(u32 m) {
  const auto all = machine::exchange(&m, 1);
  const int g = (tidX() & 31) / 4, t = tidX() & 3;
  const auto number = [&](int row, int col) { return all[4 * row + col / 2][0] >> (col % 2 * 16) & 0xffff; };
  return number(2 * t, g) | number(2 * t + 1, g) << 16;
}
INLINE void addProducts(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { addHalfProducts(c, uint4{a[0], a[1], a[2], a[3]}, b0, b1); }

constexpr u32 halfOnes = 0x3c003c00u;
INLINE u32 halvesOf(float low, float high) { return u32(floatToHalf(low)) | u32(floatToHalf(high)) << 16; }

INLINE void copyChunk(u32 to, const void *from, bool there) { sharedOf<uint4>(to) = there ? *static_cast<const uint4 *>(from) : uint4{}; }
INLINE void copyHalf(u32 to, const void *from) { sharedOf<uint2>(to) = *static_cast<const uint2 *>(from); }
INLINE uint2 loadHalf(u32 from) { return sharedOf<uint2>(from); }
INLINE uint4 loadChunk(u32 from) { return sharedOf<uint4>(from); }
INLINE void storeChunk(u32 to, uint4 v) { sharedOf<uint4>(to) = v; }
INLINE void storeHalf(u32 to, uint2 v) { sharedOf<uint2>(to) = v; }
INLINE void storeWord(u32 to, u32 v) { sharedOf<u32>(to) = v; }
INLINE void endCopies() {}
template <int N> INLINE void waitCopies() {}
